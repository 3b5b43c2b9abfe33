// Each file is lines of JSON: a head, then steps, measurements of the clock, names of threads, and what was
// done between steps. A run that was killed may leave a last line that is cut off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/trace/trace.h"
#include "lockstep/train/loop/step_tracer.h"
#include "trace_parts.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct RankFile {
  RankTrace trace = {};
  std::int64_t start = 0;
  Index ranks = 1;
  TraceRequest request = {};
  std::vector<std::string> ops = {};
  std::vector<ClockReading> clocks = {};
  bool has_head = false;
};

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& text : json) texts.push_back(excerpt(text.get_ref<const std::string&>()));
  return texts;
}

TraceEvent event_of(const std::vector<Index>& numbers, std::int64_t start) {
  constexpr Index kMost = Index{1} << 55U;  // a year, in nanoseconds
  if (numbers.size() != 5) throw DataError("an event has five numbers");
  const Index kind = numbers[1];
  const bool good = numbers[0] >= 0 && numbers[0] < 100'000 && kind >= 0 && kind < std::ssize(kTraceNames) &&
                    std::abs(numbers[2]) < kMost && numbers[3] >= 0 && numbers[3] < kMost;
  if (!good) throw DataError("an event is out of bounds");
  const std::int64_t begin = start + numbers[2];
  return {begin, begin + numbers[3], static_cast<std::int32_t>(numbers[4]), static_cast<TraceKind>(kind)};
}

void take_head(RankFile& file, const Json& json) {
  const std::vector<Index> request = whole_numbers(json.at("request"));
  if (request.size() != 3) throw DataError("a request has three numbers");
  file.trace.rank = static_cast<int>(whole_number(json.at("rank")));
  if (json.contains("stage")) file.trace.stage = whole_number(json.at("stage"));
  file.trace.host = excerpt(json.at("host").get<std::string>());
  file.start = whole_number(json.at("start"));
  file.ranks = whole_number(json.at("ranks"));
  file.request = {.first = request[0], .last = request[1], .slowest = request[2]};
  file.ops = texts_of(json.at("ops"));
  file.has_head = true;
}

void take_step(RankFile& file, const Json& json) {
  TracedStep step{.step = whole_number(json.at("step")),
                  .seconds = json.at("seconds").get<double>(),
                  .why = json.at("why").get<std::string>()};
  for (const Json& event : json.at("events")) {
    const std::vector<Index> numbers = whole_numbers(event);
    const TraceEvent taken = event_of(numbers, file.start);
    step.events.push_back({static_cast<int>(numbers[0]), taken});
  }
  file.trace.steps.push_back(std::move(step));
}

void take_line(RankFile& file, const std::string& text) {
  const auto json = parse_json<Json>(text);
  if (!json.is_object()) throw DataError("it is no object");
  if (json.contains("rank")) return take_head(file, json);
  if (!file.has_head) throw DataError("it comes before the head");
  if (json.contains("step")) return take_step(file, json);
  if (json.contains("threads")) file.trace.threads = texts_of(json.at("threads"));
  if (json.contains("outside")) {
    file.trace.between.push_back(event_of(whole_numbers(json.at("outside")), file.start));
  }
  if (json.contains("clock")) {
    const std::vector<Index> numbers = whole_numbers(json.at("clock"));
    if (numbers.size() != 3) throw DataError("a clock has three numbers");
    file.clocks.push_back({.own = file.start + numbers[0], .offset = numbers[1], .error = numbers[2]});
  }
}

RankFile read_file_of_rank(const std::filesystem::path& path, std::vector<std::string>& faults) {
  RankFile file;
  std::ifstream in(path, std::ios::binary);
  Index number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    std::string fault;
    try {
      take_line(file, text);
    } catch (const DataError& error) {
      fault = error.what();
    } catch (const Json::exception& error) {
      fault = excerpt(error.what());
    }
    if (fault.empty()) continue;
    if (in.eof()) fault = "it is cut off, as the run was ended while it was written";
    faults.push_back(fmt::format("line {} of '{}' is left out: {}", number, path.string(), fault));
  }
  return file;
}

// Between two measurements the clock has drifted evenly; before the first and after the last one it is taken
// as it was then.
std::int64_t common(const std::vector<ClockReading>& clocks, std::int64_t own) {
  if (clocks.empty()) return own;
  const auto after = std::ranges::upper_bound(clocks, own, {}, &ClockReading::own);
  if (after == clocks.begin()) return own + clocks.front().offset;
  const ClockReading& from = *std::prev(after);
  if (after == clocks.end() || after->own == from.own) return own + from.offset;
  const double share = static_cast<double>(own - from.own) / static_cast<double>(after->own - from.own);
  return own + from.offset + std::llround(share * static_cast<double>(after->offset - from.offset));
}

void align(RankFile& file) {
  const auto move = [&](TraceEvent& event) {
    const std::int64_t length = event.end - event.begin;
    event.begin = common(file.clocks, event.begin);
    event.end = event.begin + length;
  };
  for (TracedStep& step : file.trace.steps) {
    for (ThreadEvent& each : step.events) move(each.event);
  }
  for (TraceEvent& event : file.trace.between) move(event);
  for (const ClockReading& clock : file.clocks) {
    file.trace.clock_error = std::max(file.trace.clock_error, clock.error);
  }
}

// The steps that are kept: the first, the last, and of the others the slowest.
std::set<Index> chosen_steps(const std::vector<RankFile>& files) {
  std::set<Index> chosen;
  std::vector<SlowStep> slow;
  for (const RankFile& file : files) {
    for (const TracedStep& step : file.trace.steps) {
      if (step.why != "slowest")
        chosen.insert(step.step);
      else
        slow.push_back({step.step, step.seconds});
    }
  }
  const std::vector<SlowStep> order = slowest_first(slow);
  const Index count = std::min(std::ssize(order), files.front().request.slowest);
  for (Index i = 0; i < count; ++i) chosen.insert(at(order, i).step);
  return chosen;
}

}  // namespace

std::vector<SlowStep> slowest_first(const std::vector<SlowStep>& times) {
  std::map<Index, double> longest;
  for (const SlowStep& time : times) longest[time.step] = std::max(longest[time.step], time.seconds);
  std::vector<SlowStep> order;
  for (const auto& [step, seconds] : longest) order.push_back({step, seconds});
  std::ranges::stable_sort(order, std::greater(), &SlowStep::seconds);
  return order;
}

std::filesystem::path trace_file(const std::filesystem::path& directory, int rank) {
  return directory / fmt::format("rank-{:05}.jsonl", rank);
}

std::int64_t RunTrace::clock_error() const {
  std::int64_t most = 0;
  for (const RankTrace& rank : ranks) most = std::max(most, rank.clock_error);
  return most;
}

RunTrace read_trace(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  RunTrace trace;
  std::vector<RankFile> files;
  for (const std::filesystem::path& path : paths) {
    files.push_back(read_file_of_rank(path, trace.faults));
    if (!files.back().has_head) files.pop_back();
  }
  if (files.empty()) {
    throw DataError(fmt::format("'{}' has no timeline of any rank", directory.string()));
  }
  std::ranges::sort(files, {}, [](const RankFile& file) { return file.trace.rank; });
  trace.ops = files.front().ops;
  trace.ranks_of_run = files.front().ranks;
  if (std::ssize(files) < trace.ranks_of_run) {
    trace.faults.push_back(fmt::format("'{}' has the timelines of {} of {} ranks", directory.string(),
                                       files.size(), trace.ranks_of_run));
  }
  const std::set<Index> chosen = chosen_steps(files);
  for (RankFile& file : files) {
    align(file);
    std::erase_if(file.trace.steps, [&](const TracedStep& step) { return !chosen.contains(step.step); });
    std::ranges::sort(file.trace.steps, {}, &TracedStep::step);
    trace.ranks.push_back(std::move(file.trace));
  }
  trace.last_arrivals = find_last_arrivals(trace.ranks);
  return trace;
}

}  // namespace lockstep
