#include "lockstep/train/storage/run_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <limits>
#include <type_traits>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/early_stopping.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates{"running", "stopped", "stopped early",   "done",
                             "failed",  "killed",  "no sign of life", "damaged"};  // as RunState

constexpr const char* kTimeFormat = "%Y-%m-%dT%H:%M:%SZ";

// The parts of a record name their fields once, for writing and for reading: each(name, field).
#define LOCKSTEP_FIELD(field) each(#field, part.field);
#define LOCKSTEP_FIELDS(Part, ...)                                         \
  template <class Each>                                                    \
  void each_field(Part& part, const Each& each) {                          \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(LOCKSTEP_FIELD, __VA_ARGS__)) \
  }
LOCKSTEP_FIELDS(Progress, steps, samples, epochs)
LOCKSTEP_FIELDS(Heartbeat, time, host, pid)
LOCKSTEP_FIELDS(Launch, command, time, resumed_at, replicas, threads, precision, placement, cpu, hosts, cores,
                algorithm)
LOCKSTEP_FIELDS(PlanRecord, ranks, servers, rows, parameters, steps, samples, epochs, global_batch,
                epoch_samples, times_each_seen, table, sentences, model, stages)
LOCKSTEP_FIELDS(EvaluationFigures, step, epoch, weights, values)
LOCKSTEP_FIELDS(DecidingFigure, measure, value, step)
LOCKSTEP_FIELDS(KeptWeights, best, step, average)
LOCKSTEP_FIELDS(RunRecord, version, commit, config, idle_keys, state, reason, exit_code, heartbeat, launch,
                plan, measure, keeps_best, scaled_label, positive, progress, seconds, figures, last, deciding,
                forecasts, data, kept, warnings, more_warnings, files, result)
#undef LOCKSTEP_FIELDS
#undef LOCKSTEP_FIELD

template <class Part>
concept HasFields = requires(Part part) {
  each_field(part, [](const char*, auto&) {});
};

template <class Value>
inline constexpr bool kIsMapOfParts = false;
template <HasFields Part>
inline constexpr bool kIsMapOfParts<std::map<std::string, Part>> = true;

template <class Value>
Json json_of(const Value& value) {
  Json json;
  if constexpr (HasFields<Value>) {
    // The list of fields is one for reading and writing; nothing is changed here.
    each_field(const_cast<Value&>(value),
               [&](const char* name, auto& field) { json[name] = json_of(field); });
  } else if constexpr (kIsMapOfParts<Value>) {
    json = Json::object();
    for (const auto& [name, part] : value) json[name] = json_of(part);
  } else if constexpr (std::is_same_v<Value, MetricValues>) {
    json = Json::object();
    for (const auto& [name, number] : value) json[name] = json_number(number);
  } else if constexpr (std::is_same_v<Value, RunState>) {
    json = to_string(value);
  } else if constexpr (std::is_same_v<Value, std::optional<Index>>) {
    if (value) json = *value;
  } else if constexpr (std::is_same_v<Value, double>) {
    json = json_number(value);
  } else {
    json = value;
  }
  return json;
}

RunState state_named(const Json& json) {
  const auto found = std::ranges::find_if(kStates, [&](const char* name) { return json == name; });
  if (found == kStates.end()) throw DataError("{} is no state of a run", excerpt(json.dump()));
  return static_cast<RunState>(found - kStates.begin());
}

// Counts of a file may be any; these can be added up.
Index count_of(const Json& json) {
  constexpr Index kMost = 1'000'000'000'000'000;
  return std::clamp(whole_number(json), Index{0}, kMost);
}

double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

template <class Value>
void take(const Json& json, Value& value) {
  if constexpr (HasFields<Value>) {
    if (!json.is_object()) throw DataError("{} where an object belongs", excerpt(json.dump()));
    each_field(value, [&](const char* name, auto& field) {
      const auto found = json.find(name);
      error_if<DataError>(found == json.end(), "it has no {}; {}", in_quotes(name), kOtherVersion);
      take(*found, field);
    });
  } else if constexpr (kIsMapOfParts<Value>) {
    for (const auto& [name, part] : json.items()) take(part, value[name]);
  } else if constexpr (std::is_same_v<Value, MetricValues>) {
    for (const auto& [name, number] : json.items()) value.emplace_back(name, number_of(number));
  } else if constexpr (std::is_same_v<Value, RunState>) {
    value = state_named(json);
  } else if constexpr (std::is_same_v<Value, std::optional<Index>>) {
    if (!json.is_null()) value = count_of(json);
  } else if constexpr (std::is_same_v<Value, Index>) {
    value = count_of(json);
  } else if constexpr (std::is_same_v<Value, double>) {
    value = number_of(json);
  } else {
    value = json.get<Value>();
  }
}

// A record that says "running" may be that of a process that is gone, or silent.
void check_heartbeat(RunRecord& record, const RunDirectory& run) {
  if (record.state != RunState::kRunning || run.is_held()) return;
  const Heartbeat& last = record.heartbeat;
  const bool here = last.host == host_name();
  if (here && ::kill(static_cast<pid_t>(last.pid), 0) != 0 && errno == ESRCH) {
    record.state = RunState::kKilled;
    record.reason = fmt::format("process {} is gone, its last sign of life was at {}", last.pid, last.time);
  } else if (last.seconds_ago() > kMissedHeartbeats * kHeartbeatSeconds) {
    record.state = RunState::kSilent;
    record.reason = fmt::format("the last one from host {} was at {}", last.host, last.time);
  }
}

// Null where it cannot be read, or is damaged.
std::optional<RunRecord> whole_record(const RunDirectory& run) {
  try {
    return read_run_record(run);
  } catch (const CannotOpenError&) {
    throw;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// The writer of run.json: a thread that sleeps until the record changes or a heartbeat is due. `mutex_` is
// held while the record is read or changed, and never while a file is written.

using std::chrono_literals::operator""s;

// Each warning once, and no more than a page shows.
void add_warning(RunRecord& record, const std::string& warning) {
  constexpr std::size_t kMaxWarnings = 10;
  if (std::ranges::find(record.warnings, warning) != record.warnings.end()) return;
  if (record.warnings.size() < kMaxWarnings) {
    record.warnings.push_back(warning);
  } else {
    ++record.more_warnings;
  }
}

}  // namespace

std::string to_string(RunState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::optional<double> find_metric(const MetricValues& values, const std::string& name) {
  for (const auto& [metric, value] : values) {
    if (metric == name) return value;
  }
  return std::nullopt;
}

Heartbeat Heartbeat::now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), kTimeFormat, &utc);
  return {.time = std::string(text.data(), length), .host = host_name(), .pid = ::getpid()};
}

double Heartbeat::seconds_ago() const {
  std::tm utc{};
  if (::strptime(time.c_str(), kTimeFormat, &utc) == nullptr) return 0;
  return std::difftime(std::time(nullptr), ::timegm(&utc));
}

std::string Launch::describe() const {
  const std::set<std::string> distinct(hosts.begin(), hosts.end());
  return fmt::format("{} on {}, {}, {}, precision {}; {}", plural(std::ssize(hosts), "rank"),
                     plural(std::ssize(distinct), "host"), plural(replicas, "replica"),
                     plural(threads, "thread"), precision, placement);
}

std::string KeptWeights::describe() const {
  return fmt::format("{}{}{}", best ? "best" : "last", average.empty() ? "" : ", ", average);
}

const DecidingFigure* RunRecord::decides() const {
  for (const char* split : {"validation", "test", "train"}) {
    const auto found = deciding.find(split);
    if (found != deciding.end()) return &found->second;
  }
  return nullptr;
}

void RunRecord::add_progress(const Progress& now) {
  if (now.steps <= progress.steps) return;
  progress = now;
  if (timed.samples_per_second > 0)
    seconds = timed.seconds + static_cast<double>(now.samples - timed.samples) / timed.samples_per_second;
}

void RunRecord::add_training(const Progress& now, double loss, double rate) {
  const auto samples = static_cast<double>(now.samples - timed.samples);
  if (rate > 0 && std::isfinite(rate)) {
    timed.seconds += samples / rate;
    timed.samples_per_second = rate;
  }
  timed.samples = now.samples;
  seconds = timed.seconds;
  progress = now;
  if (!kept.best) kept.step = now.steps;
  if (std::isfinite(loss)) {
    deciding["train"] = {.split = "train", .measure = "loss", .value = loss, .step = now.steps};
  }
}

void RunRecord::add_evaluation(const std::string& split, const Progress& of_weights, MetricValues values,
                               const std::string& average) {
  add_progress(of_weights);
  if (!kept.best) kept.step = progress.steps;
  const std::optional<double> value = find_metric(values, measure);
  const bool keeps = keeps_best && split == "validation";
  const auto before = deciding.find(split);
  const bool better =
      before == deciding.end() || !keeps ||
      (value && (smaller_is_better(measure) ? *value < before->second.value : *value > before->second.value));
  if (value && std::isfinite(*value) && better) {
    deciding[split] = {.split = split, .measure = measure, .value = *value, .step = of_weights.steps};
    if (keeps) kept = {.best = true, .step = of_weights.steps, .average = average};
  }
  const bool best = kept.best && kept.step == of_weights.steps;
  const KeptWeights weights{.best = best, .step = of_weights.steps, .average = average};
  last[split] = {.step = of_weights.steps,
                 .epoch = of_weights.epochs,
                 .weights = weights.describe(),
                 .values = std::move(values)};
  if (best || !kept.best || split != "validation") figures[split] = last[split];
}

nlohmann::ordered_json to_json(const PlanRecord& plan) {
  return json_of(plan);
}

std::string to_json(const RunRecord& record) {
  return indented(json_of(record));
}

RunRecord parse_run_record(const std::string& json) {
  RunRecord record;
  read_json<Json>(json, [&](const Json& values) { take(values, record); });
  for (auto& [split, figure] : record.deciding) figure.split = split;
  return record;
}

std::optional<RunRecord> read_run_record(const RunDirectory& run) {
  if (!is_there(run.record())) return std::nullopt;
  RunRecord record = parse_run_record(read_file(run.record()));
  check_heartbeat(record, run);
  return record;
}

std::optional<Index> completed_steps(const RunDirectory& run) {
  if (!is_there(run.model())) return std::nullopt;
  const std::optional<RunRecord> record = whole_record(run);
  if (!record || !record->is_complete()) return std::nullopt;
  return record->progress.steps;
}

std::vector<std::string> lost_files(const RunDirectory& run) {
  const std::optional<RunRecord> record = whole_record(run);
  std::vector<std::string> names;
  if (!record || !record->result.is_object() || !record->result.contains("lost")) return names;
  for (const Json& name : record->result["lost"]) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

RunRecordFile::RunRecordFile(RunRecord record,
                             std::function<std::optional<std::filesystem::path>()> directory)
    : directory_(std::move(directory)), record_(std::move(record)) {
  write_if_possible();
  thread_ = std::thread([this] { keep_alive(); });
}

RunRecordFile::~RunRecordFile() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RunRecordFile::change(const std::function<void(RunRecord&)>& change) {
  const std::lock_guard lock(mutex_);
  change(record_);
  changed_ = true;
  wake_.notify_all();
}

void RunRecordFile::end(const std::filesystem::path& directory,
                        const std::function<void(RunRecord&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    change(record_);
  }
  wake_.notify_all();
  const std::lock_guard lock(writing_);
  write_file_atomically(RunDirectory{directory}.record(), text_now());
}

// The record with the warnings so far and a sign of life.
std::string RunRecordFile::text_now() {
  const std::vector<std::string> warnings = logged_warnings();
  const std::lock_guard lock(mutex_);
  for (; warnings_taken_ < warnings.size(); ++warnings_taken_) {
    add_warning(record_, warnings[warnings_taken_]);
  }
  record_.heartbeat = Heartbeat::now();
  changed_ = false;
  return to_json(record_);
}

// After the end, only end() writes.
void RunRecordFile::write_if_possible() {
  try {
    const std::optional<std::filesystem::path> directory = directory_();
    const std::lock_guard lock(writing_);
    if (directory && !ended_) write_file_atomically(RunDirectory{*directory}.record(), text_now());
  } catch (const Error&) {
  }
}

void RunRecordFile::keep_alive() {
  constexpr auto kBeat = std::chrono::duration<double>(kHeartbeatSeconds / 2);
  constexpr auto kShortest = 1s;
  while (!ended_) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kShortest, [this] { return ended_.load(); });
      wake_.wait_for(lock, kBeat - kShortest, [this] { return ended_ || changed_; });
    }
    write_if_possible();
  }
}

}  // namespace lockstep
