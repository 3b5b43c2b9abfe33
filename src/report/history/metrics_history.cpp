#include "lockstep/report/history/metrics_history.h"
#include "lockstep/base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMaxColumns = 60;
constexpr std::size_t kMaxFaults = 5;
constexpr std::size_t kMaxClasses = 100;

// The numbers of a worker and of a rank, by their names in a line.
constexpr std::array kWorkerNumbers{std::pair{"computed", &WorkerRecord::computed},
                                    std::pair{"steps", &WorkerRecord::steps},
                                    std::pair{"samples", &WorkerRecord::samples},
                                    std::pair{"dropped", &WorkerRecord::dropped},
                                    std::pair{"dropped_samples", &WorkerRecord::dropped_samples},
                                    std::pair{"max_ahead", &WorkerRecord::max_ahead}};
constexpr std::array kRankNumbers{
    std::pair{"data", &RankTime::data},         std::pair{"compute", &RankTime::compute},
    std::pair{"exchange", &RankTime::exchange}, std::pair{"waiting", &RankTime::waiting},
    std::pair{"delay", &RankTime::delay},       std::pair{"to_best", &RankTime::to_best},
    std::pair{"to_own", &RankTime::to_own}};

double number_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) throw DataError("it has no {}", name);
  return found->get<double>();
}

// A file may state any number.
Index whole_count(double number) {
  static constexpr double kMost = 1e15;
  return static_cast<Index>(std::clamp(number, 0.0, kMost));
}

// A count, which may be added to many others.
Index count_of(const Json& json) {
  constexpr Index kMaxCount = 1'000'000'000'000;
  return std::clamp(whole_number(json), Index{0}, kMaxCount);
}

std::vector<Index> counts_of(const Json& json) {
  std::vector<Index> counts;
  for (const Json& count : json) counts.push_back(count_of(count));
  return counts;
}

ConfusionMatrix matrix_of(const Json& json) {
  ConfusionMatrix matrix;
  if (json.size() > kMaxClasses) return matrix;
  for (const Json& row : json) matrix.push_back(counts_of(row));
  const bool square =
      std::ranges::all_of(matrix, [&](const auto& row) { return row.size() == matrix.size(); });
  return square ? matrix : ConfusionMatrix{};
}

std::vector<WorkerRecord> workers_of(const Json& json) {
  std::vector<WorkerRecord> workers;
  for (const Json& worker : json) {
    if (!worker.is_object()) throw DataError("a worker is no object");
    WorkerRecord& record = workers.emplace_back();
    for (const auto& [name, number] : kWorkerNumbers) record.*number = count_of(worker.value(name, Json(0)));
    record.staleness = counts_of(worker.value("staleness", Json::array()));
  }
  return workers;
}

Slowness slowness_of(const Json& json) {
  for (const Slowness slowness : {Slowness::kTransient, Slowness::kChronic}) {
    if (json == to_string(slowness)) return slowness;
  }
  return Slowness::kNone;
}

// Lists with a number for each rank; a list that is missing or too short leaves zeros.
RankTimes ranks_of(const Json& json) {
  constexpr std::size_t kMaxRanks = 100'000;
  const auto list = [&](const char* name) { return json.value(name, Json::array()); };
  RankTimes times{.ranks = std::vector<RankTime>(std::min(list("compute").size(), kMaxRanks))};
  const auto each = [&](const char* name, const auto& set) {
    const Json all = list(name);
    for (std::size_t rank = 0; rank < std::min(times.ranks.size(), all.size()); ++rank)
      set(times.ranks[rank], all[rank]);
  };
  each("host", [](RankTime& time, const Json& value) {
    if (value.is_string()) time.host = value.get<std::string>();
  });
  each("slow", [](RankTime& time, const Json& value) { time.slowness = slowness_of(value); });
  for (const auto& [name, number] : kRankNumbers) {
    each(name, [member = number](RankTime& time, const Json& value) {
      if (value.is_number()) time.*member = value.get<double>();
    });
  }
  const auto number = [&](const char* name) {
    const Json value = json.value(name, Json());
    return value.is_number() ? value.get<double>() : 0;
  };
  times.seconds = number("seconds");
  times.windows = whole_count(number("windows"));
  times.load = number("load");
  times.cores = whole_count(number("cores"));
  return times;
}

void add_value(MetricsLine& line, const std::string& name, const Json& value) {
  if (line.values.size() == kMaxColumns) return;
  if (value.is_number()) line.values.emplace_back(name, value.get<double>());
  if (value.is_null()) line.values.emplace_back(name, kNaN);
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string csv_line(const MetricsLine& line, const std::string& run,
                     const std::vector<std::string>& columns) {
  std::string text = fmt::format("{},{},{},{},{},{}", run, csv_cell(line.kind), csv_cell(line.split),
                                 csv_number(line.step), csv_number(line.epoch), csv_number(line.samples));
  for (const std::string& column : columns) {
    text += ',' + csv_number(line.number(column));
  }
  return text + '\n';
}

// The numbers of an evaluation that measure the model.
MetricValues measures_of(const MetricsLine& evaluation) {
  MetricValues values;
  for (const auto& [name, value] : evaluation.values) {
    if (std::isfinite(value) && is_measure(name)) values.emplace_back(name, value);
  }
  return values;
}

void add_line(MetricsHistory& history, const MetricsLine& line, double kept_step) {
  if (line.kind == "train") history.train.add(line);
  if (line.kind == "workers") history.workers = line.workers;
  if (line.kind == "ranks") history.ranks = line.ranks;
  if (line.kind != "evaluation") return;
  if (!line.sample.empty()) history.texts.push_back({line.step, line.sample});
  auto found = std::ranges::find(history.evaluations, line.split, &EvaluationHistory::split);
  if (found == history.evaluations.end()) {
    found = history.evaluations.insert(found, EvaluationHistory{.split = line.split});
  }
  EvaluationHistory& split = *found;
  split.table.add(line);
  if (line.confusion.empty() || (!split.confusion.empty() && split.confusion_step == kept_step)) return;
  split.confusion = line.confusion;
  split.confusion_step = line.step;
}

// The file has rates, not times: the seconds of a line are its samples divided by its rate.
void add_seconds(MetricsHistory& history) {
  MetricsTable& train = history.train;
  const MetricsTable::Column* rates = train.find("samples_per_second");
  double seconds = 0;
  for (std::size_t row = 0; row < train.rows(); ++row) {
    const double samples = train.samples[row] - (row == 0 ? 0 : train.samples[row - 1]);
    const double rate = rates == nullptr ? 0 : rates->values[row];
    if (rate > 0 && std::isfinite(rate) && samples > 0) seconds += samples / rate;
    train.seconds.push_back(seconds);
  }
  for (EvaluationHistory& each : history.evaluations) {
    for (const double samples : each.table.samples) each.table.seconds.push_back(history.seconds_at(samples));
  }
}

}  // namespace

ConfusionMatrix as_square(std::span<const Index> counts, Index columns) {
  ConfusionMatrix rows;
  for (auto row = counts.begin(); row != counts.end(); row += columns) rows.emplace_back(row, row + columns);
  return rows;
}

void add_progress(Json& json, const Progress& progress) {
  json["step"] = progress.steps;
  json["epoch"] = progress.epochs;
  json["samples_seen"] = progress.samples;
}

Json shares_json(const TimeShares& shares) {
  Json json{{"data", shares.data},
            {"compute", shares.compute},
            {"forward", shares.forward},
            {"optimizer", shares.optimizer},
            {"communication", shares.communication},
            {"waiting", shares.waiting}};
  if (shares.idle > 0) json["idle"] = shares.idle;
  if (shares.hidden) json["hidden"] = *shares.hidden;
  return json;
}

Json workers_json(const WorkersReport& report) {
  Json workers = Json::array();
  for (const WorkerRecord& worker : report.workers) {
    Json json;
    for (const auto& [name, number] : kWorkerNumbers) json[name] = worker.*number;
    json["staleness"] = worker.staleness;
    workers.push_back(json);
  }
  return {{"mean_staleness", report.mean_staleness()},
          {"staleness_95", report.staleness_percentile(0.95)},
          {"workers", workers}};
}

// A list of each number, with one entry for each rank: short, and easy to turn into columns.
Json ranks_json(const RankTimes& times) {
  Json json{{"seconds", times.seconds}, {"windows", times.windows}};
  if (times.load > 0) json.update({{"load", times.load}, {"cores", times.cores}});
  const auto add = [&](const char* name, const auto& of_rank) {
    json[name] = Json::array();
    for (const RankTime& time : times.ranks) json[name].push_back(of_rank(time));
  };
  const auto rounded = [](double value) { return std::round(1e6 * value) / 1e6; };
  add("host", [](const RankTime& time) { return excerpt(time.host); });
  for (const auto& [name, number] : kRankNumbers) {
    add(name, [&, member = number](const RankTime& time) { return rounded(time.*member); });
  }
  add("slow_windows", [](const RankTime& time) { return time.slow_windows; });
  add("slow", [](const RankTime& time) { return to_string(time.slowness); });
  json["hosts"] = Json::array();
  for (const HostTime& host : times.hosts) {
    json["hosts"].push_back({{"host", excerpt(host.host)},
                             {"ranks", host.ranks},
                             {"delay", rounded(host.delay)},
                             {"cost", rounded(times.cost(host.delay))}});
  }
  return json;
}

Json evaluation_json(const EvalMetrics& metrics) {
  Json json{{"kind", "evaluation"}, {"split", to_string(metrics.split)}};
  add_progress(json, metrics.progress);
  json["samples"] = metrics.samples;
  if (metrics.positions > 0) json["positions"] = metrics.positions;
  json["loss"] = metrics.loss;
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (metrics.top_k_accuracy) {
    json["top_k"] = metrics.top_k;
    json["top_k_accuracy"] = *metrics.top_k_accuracy;
  }
  for (const MetricValue& other : metrics.others) {
    json[other.name] = other.value ? Json(*other.value) : Json(nullptr);
  }
  for (const MetricValue& other : metrics.others)
    if (other.left_out > 0) json["left_out"][other.name] = other.left_out;
  if (!metrics.positive().empty()) json["positive"] = metrics.positive();
  if (!metrics.confusion.empty()) json["confusion"] = as_square(metrics.confusion, metrics.classes);
  if (const std::optional<ThresholdAnswers>& at = metrics.threshold) {
    json["threshold"] = {{"probability", at->threshold},
                         {"accuracy", json_number(at->accuracy)},
                         {"precision", json_number(at->precision)},
                         {"recall", json_number(at->recall)},
                         {"f1", json_number(at->f1)},
                         {"confusion", as_square(at->confusion, 2)}};
  }
  json["seconds"] = metrics.seconds;
  return json;
}

MetricsLine metrics_line(const Json& json) {
  if (!json.is_object()) throw DataError("it is no object");
  MetricsLine line;
  line.kind = json.value("kind", Json()).is_string() ? json.at("kind").get<std::string>() : "";
  line.split = json.value("split", Json()).is_string() ? json.at("split").get<std::string>() : "";
  line.sample = json.value("sample", Json()).is_string() ? json.at("sample").get<std::string>() : "";
  line.step = number_of(json, "step");
  line.epoch = number_of(json, "epoch");
  line.samples = number_of(json, "samples_seen");
  if (line.kind == "ranks") line.ranks = ranks_of(json);
  for (const auto& [name, value] : json.items()) {
    if (name == "step" || name == "epoch" || name == "samples_seen" || name == "left_out") continue;
    if (name == "confusion" && value.is_array()) line.confusion = matrix_of(value);
    if (name == "workers" && value.is_array()) line.workers = workers_of(value);
    add_value(line, name, value);
    if (!value.is_object()) continue;
    for (const auto& [part, share] : value.items()) add_value(line, fmt::format("{}.{}", name, part), share);
  }
  return line;
}

double MetricsLine::number(std::string_view name) const {
  const auto found = std::ranges::find(values, name, &std::pair<std::string, double>::first);
  return found == values.end() ? kNaN : found->second;
}

std::vector<std::string> read_metrics_lines(const std::filesystem::path& file,
                                            const std::function<void(const MetricsLine&)>& on_line) {
  std::vector<std::string> faults;
  if (!is_there(file)) return faults;
  check_regular_file(file);
  std::ifstream in(file, std::ios::binary);
  if (!in) throw DataError("cannot read '{}': {}", file.string(), std::strerror(errno));
  Index number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    try {
      on_line(read_json<Json>(text, metrics_line));
    } catch (const DataError& error) {
      const bool cut = in.eof();  // no end of line came
      if (faults.size() > kMaxFaults) continue;
      faults.push_back(faults.size() == kMaxFaults ? "and so on"
                       : cut ? fmt::format("line {}, the last one, is cut off", with_commas(number))
                             : fmt::format("line {}: {}", with_commas(number), error.what()));
    }
  }
  return faults;
}

void add_line(RunRecord& record, const MetricsLine& line, const std::function<std::string(Index)>& average) {
  const Progress progress{
      .steps = whole_count(line.step), .samples = whole_count(line.samples), .epochs = line.epoch};
  const std::string averaged = average(progress.steps);
  if (!record.kept.best) record.kept.average = averaged;
  if (line.kind == "train") {
    record.add_training(progress, line.number("loss"), line.number("samples_per_second"));
  } else if (line.kind == "evaluation") {
    record.add_evaluation(line.split, progress, measures_of(line), averaged);
  }
}

EvaluationFigures figures_of(const MetricsLine& evaluation, const KeptWeights& kept) {
  return {.step = whole_count(evaluation.step),
          .epoch = evaluation.epoch,
          .weights = kept.describe(),
          .values = measures_of(evaluation)};
}

const MetricsTable::Column* MetricsTable::find(const std::string& name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

void MetricsTable::add(const MetricsLine& line) {
  for (const auto& [name, value] : line.values) {
    auto column = std::ranges::find(columns, name, &Column::name);
    if (column == columns.end()) {
      if (columns.size() == kMaxColumns) continue;
      column = columns.insert(columns.end(), {name, std::vector<double>(rows(), kNaN)});
    }
    if (column->values.size() == rows()) column->values.push_back(value);
  }
  steps.push_back(line.step);
  samples.push_back(line.samples);
  for (Column& column : columns) column.values.resize(rows(), kNaN);
}

double MetricsHistory::seconds_at(double samples) const {
  const auto after = std::ranges::lower_bound(train.samples, samples);
  if (train.samples.empty()) return 0;
  if (after == train.samples.end()) return train.seconds.back();
  const auto row = static_cast<std::size_t>(after - train.samples.begin());
  const double from = row == 0 ? 0 : train.samples[row - 1];
  const double begin = row == 0 ? 0 : train.seconds[row - 1];
  const double span = train.samples[row] - from;
  return span > 0 ? begin + (train.seconds[row] - begin) * (samples - from) / span : train.seconds[row];
}

MetricsHistory read_metrics_history(const std::filesystem::path& file, double kept_step,
                                    const std::function<void(const MetricsLine&)>& on_line) {
  MetricsHistory history;
  history.faults = read_metrics_lines(file, [&](const MetricsLine& line) {
    if (on_line) on_line(line);
    add_line(history, line, kept_step);
  });
  add_seconds(history);
  return history;
}

std::vector<std::string> write_metrics_csv(const std::vector<std::filesystem::path>& metrics,
                                           const std::vector<std::string>& names,
                                           const std::function<void(std::string_view)>& write) {
  std::vector<std::string> faults;
  std::vector<std::string> columns;
  for (const std::filesystem::path& file : metrics) {
    const auto found = read_metrics_lines(file, [&](const MetricsLine& line) {
      for (const auto& [name, value] : line.values) {
        if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
      }
    });
    for (const std::string& fault : found) faults.push_back(fmt::format("'{}': {}", file.string(), fault));
  }
  std::string head = "run,kind,split,step,epoch,samples_seen";
  for (const std::string& column : columns) head += ',' + csv_cell(column);
  write(head + '\n');
  for (std::size_t run = 0; run < metrics.size(); ++run) {
    const std::string name = csv_cell(names[run]);
    read_metrics_lines(metrics[run], [&](const MetricsLine& line) { write(csv_line(line, name, columns)); });
  }
  return faults;
}

}  // namespace lockstep
