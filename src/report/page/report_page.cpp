// Runs as the JSON that the page draws. A text is in it as excerpt() has it: without control characters and
// marks that turn the direction of writing, and not longer than a page needs. A number is null where it is
// not finite.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/report/page/report_page.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/observer.h"
#include "page_parts.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxValueBytes = 400;
constexpr std::size_t kMaxSentenceBytes = 1000;

/// The most that is shown of a run.
struct PageLimits {
  std::size_t points = 0;   ///< of a series
  std::size_t records = 0;  ///< that are predicted worst
};

Json number_json(double value) {
  constexpr double kMaxWhole = 1e15;
  if (!std::isfinite(value)) return nullptr;
  if (std::abs(value) < kMaxWhole && value == std::trunc(value)) return static_cast<std::int64_t>(value);
  return value;
}

// Long lists have less digits: still more than a table shows, so that its last digit is that of the number.
Json numbers_json(const std::vector<double>& values, const std::vector<std::size_t>& points, int digits = 9) {
  Json json = Json::array();
  for (const std::size_t point : points)
    json.push_back(number_json(std::strtod(fmt::format("{:.{}g}", values[point], digits).c_str(), nullptr)));
  return json;
}

// Each measure of one set over the steps, the samples and the time of training.
void add_curves(const std::string& split, const MetricsTable& table, const PageLimits& limits, Json& curves) {
  constexpr int kCountDigits = 15;
  constexpr int kTimeDigits = 5;
  for (const MetricsTable::Column& column : table.columns) {
    if (!is_measure(column.name) || column.name.starts_with("time.")) continue;
    // Norms are measured now and then: lines without them are no gaps.
    const bool is_rare = column.name == "gradient_norm" || column.name == "weight_norm";
    std::vector<std::size_t> rows;
    std::vector<double> values;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      if (is_rare && std::isnan(column.values[row])) continue;
      rows.push_back(row);
      values.push_back(column.values[row]);
    }
    if (rows.empty()) continue;
    std::vector<std::size_t> points;
    for (const std::size_t point : kept_points(values, limits.points)) points.push_back(rows[point]);
    curves.push_back({{"measure", shown_json(column.name)},
                      {"split", shown_json(split)},
                      {"points", rows.size()},
                      {"step", numbers_json(table.steps, points, kCountDigits)},
                      {"samples", numbers_json(table.samples, points, kCountDigits)},
                      {"seconds", numbers_json(table.seconds, points, kTimeDigits)},
                      {"y", numbers_json(column.values, points)}});
    const auto bad = std::ranges::find_if(column.values, [](double value) { return !std::isfinite(value); });
    if (column.name == "loss" && bad != column.values.end())
      curves.back()["bad_step"] =
          shown_json(table.steps[static_cast<std::size_t>(bad - column.values.begin())]);
  }
}

// After a step: those of the run, or as an evaluation has them.
std::optional<double> samples_at(const PageRun& run, double step) {
  if (step == run.steps()) return run.samples();
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    const auto found = std::ranges::find(each.table.steps, step);
    if (found != each.table.steps.end())
      return each.table.samples[static_cast<std::size_t>(found - each.table.steps.begin())];
  }
  return std::nullopt;
}

// The step of the kept weights, to be marked in curves.
Json kept_json(const PageRun& run) {
  const auto step = static_cast<double>(run.record.kept.step);
  Json json{{"step", step}, {"best", run.record.kept.best}};
  if (const std::optional<double> samples = samples_at(run, step))
    json.update({{"samples", *samples}, {"seconds", run.metrics.seconds_at(*samples)}});
  return shown_json(json);
}

// The ranks, and of many those that wait least, as the others wait for them.
Json ranks_json(const std::vector<RankTime>& ranks) {
  constexpr std::size_t kMaxRanks = 64;
  constexpr std::size_t kMaxHostBytes = 40;
  Json json{{"count", ranks.size()}, {"shown", Json::array()}};
  for (const std::size_t rank : ranks_waiting_least(ranks, kMaxRanks)) {
    const RankTime& time = ranks[rank];
    json["shown"].push_back({{"rank", rank},
                             {"host", time.host},
                             {"compute", time.compute},
                             {"exchange", time.exchange},
                             {"waiting", time.waiting},
                             {"data", time.data}});
  }
  return shown_json(json, kMaxHostBytes);
}

// The ranks that cost most time, of those that are slow.
Json slow_json(const RankTimes& times) {
  constexpr std::size_t kMaxSlow = 4;
  Json json = Json::array();
  for (const std::size_t i : slow_ranks(times)) {
    const RankTime& rank = times.ranks[i];
    if (json.size() == kMaxSlow) break;
    json.push_back({{"rank", i},
                    {"host", rank.host},
                    {"slowness", to_string(rank.slowness)},
                    {"to_best", rank.to_best},
                    {"to_own", rank.to_own},
                    {"cost", times.cost(rank.delay)}});
  }
  return shown_json(json);
}

// The evaluation whose confusion matrix is shown: of the test set, else of the validation set; null without
// one.
const EvaluationHistory* shown_confusion(const PageRun& run) {
  const EvaluationHistory* shown = nullptr;
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    if (each.confusion.empty()) continue;
    if (shown == nullptr || each.split == "test") shown = &each;
  }
  return shown;
}

// Leaves the points of some lists that kept_points() has of the last of them.
void thin(Json& json, std::initializer_list<const char*> names, std::size_t max_points) {
  const auto points = kept_points(json[*std::prev(names.end())].get<std::vector<double>>(), max_points);
  for (const char* name : names) json[name] = numbers_json(json[name].get<std::vector<double>>(), points);
}

// Curves of several classes cannot be laid over those of other runs. Precision swings, while the others only
// rise: it decides which points stay.
Json predictions_json(const Json& read, bool alone, const PageLimits& limits) {
  static const Json kNone = read_shown_predictions(R"({"split":"","samples":0,"worst":[]})");
  Json json = read.is_null() ? kNone : read;
  Json& curves = json["curves"];
  if (!alone && curves.size() != 1) curves.clear();
  const std::size_t points =
      std::max<std::size_t>(limits.points / std::max<std::size_t>(curves.size(), 1), 50);
  for (Json& curve : curves) thin(curve, {"recall", "false_positive_rate", "precision"}, points);
  for (Json& fit : json["fits"]) {
    thin(fit, {"target", "prediction"}, limits.points);
    thin(fit, {"residuals"}, fit["residuals"].size());
  }
  Json& windows = json["windows"];
  if (!alone || (!windows.empty() && windows[0]["times"].size() > limits.points)) windows.clear();
  Json& worst = json["worst"];
  if (worst.size() > limits.records)
    worst.erase(worst.begin() + static_cast<std::ptrdiff_t>(limits.records), worst.end());
  return json;
}

// Null where it is not there.
Json part_of(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) ? json[name] : Json();
}

double number_or_zero(const Json& json, const char* name) {
  const Json found = part_of(json, name);
  return found.is_number() ? found.get<double>() : 0;
}

std::string text_at(const Json& json, const char* name) {
  const Json found = part_of(json, name);
  return found.is_string() ? found.get<std::string>() : "";
}

// The answers of a model of one yes or no at its threshold on this set; null where it has none.
Json threshold_json(const Json& result, const std::string& split) {
  const Json evaluation = part_of(result, "evaluation");
  const Json at = part_of(evaluation, "threshold");
  const Json counts = part_of(at, "confusion");
  const auto is_row = [](const Json& row) {
    return row.is_array() && row.size() == 2 && row[0].is_number_integer() && row[1].is_number_integer();
  };
  const bool is_square = counts.is_array() && counts.size() == 2 && std::ranges::all_of(counts, is_row);
  if (!is_square || text_at(evaluation, "split") != split) return nullptr;
  Json json{{"counts", counts}};
  for (const char* name : {"probability", "accuracy", "precision", "recall", "f1"})
    json[name] = part_of(at, name).is_number() ? at[name] : Json();
  return json;
}

Json confusion_json(const EvaluationHistory& shown, const std::vector<std::string>& names,
                    const Json& result) {
  constexpr std::size_t kMaxClassBytes = 60;
  Json json{{"split", shown_json(shown.split)},
            {"step", shown_json(shown.confusion_step)},
            {"classes", Json::array()},
            {"counts", shown.confusion},
            {"scores", Json::array()}};
  for (const ClassScore& score : class_scores(shown.confusion)) {
    json["classes"].push_back(shown_json(class_name(names, json["classes"].size()), kMaxClassBytes));
    json["scores"].push_back(shown_json({{"samples", score.samples},
                                         {"precision", score.precision},
                                         {"recall", score.recall},
                                         {"f1", score.f1}}));
  }
  if (const Json at = threshold_json(result, shown.split); !at.is_null()) json["threshold"] = at;
  return json;
}

// How predictions of about one probability came true, of the last evaluation; null where they are none.
Json reliability_json(const Json& result) {
  const Json evaluation = part_of(result, "evaluation");
  const Json split = part_of(evaluation, "split");
  Json json;
  for (const Json& bin : part_of(evaluation, "reliability")) {
    json["split"] = split.is_string() ? shown_json(split) : Json("");
    for (const char* part : {"predicted", "observed", "samples"}) json[part].push_back(part_of(bin, part));
  }
  return json;
}

// The forecasts of sets of windows; none that are too long for the page, or not as a run writes them.
Json forecasts_json(const Json& forecasts, const PageLimits& limits) {
  Json shown = Json::array();
  for (const auto& [split, of_set] : forecasts.items()) {
    for (const Json& each : of_set) {
      const Json steps = part_of(each, "by_step");
      if (!steps.is_array() || steps.size() > limits.points) continue;
      shown.push_back({{"split", split}, {"name", text_at(each, "name")}, {"by_step", steps}});
      shown.back()["mean_absolute_error"] = number_or_zero(each, "mean_absolute_error");
    }
  }
  return shown_json(shown);
}

Json columns_json(const std::vector<std::vector<std::string>>& columns) {
  constexpr std::size_t kMaxTableColumns = 200;
  const auto shown = std::span(columns).first(std::min(columns.size(), kMaxTableColumns));
  return {{"count", columns.size()}, {"rows", shown_json(std::vector(shown.begin(), shown.end()))}};
}

// Host and cores of the first 2,000 ranks.
Json placement_json(const Launch& launch) {
  constexpr std::size_t kMaxRanks = 2000;
  const std::size_t ranks = std::min(launch.hosts.size(), launch.cores.size());
  Json json = Json::array();
  for (std::size_t rank = 0; rank < std::min(ranks, kMaxRanks); ++rank) {
    json.push_back({fmt::format("{}", rank), launch.hosts[rank], launch.cores[rank]});
  }
  if (ranks > kMaxRanks) json.push_back({"...", "", ""});
  return shown_json(json);
}

void add_words(const PageRun& run, Json& json) {
  const RunRecord& record = run.record;
  if (!record.plan.table.empty()) {
    const Json plan = to_json(record.plan);
    for (const auto& [name, value] : plan.items())
      if (value.is_number()) json["planned"][name] = shown_json(value);
  }
  json["plan"] = shown_json(record.plan.table, kMaxValueBytes);
  json["sentences"] = shown_json(record.plan.sentences, kMaxSentenceBytes);
  json["model"] = shown_json(record.plan.model, kMaxValueBytes);
  json["stages"] = shown_json(record.plan.stages, kMaxValueBytes);
  json["config"] = Json::array();
  for (const ConfigLine& line : run.config) {
    json["config"].push_back(
        shown_json({{"key", line.key}, {"value", line.value}, {"default", line.by_default}}));
  }
  json["launch"] =
      record.launch.hosts.empty() ? Json("") : shown_json(record.launch.describe(), kMaxValueBytes);
  json["algorithm"] = shown_json(record.launch.algorithm);
  json["placement"] = placement_json(record.launch);
}

// Texts that the model has written, of many those that are spread over the steps.
Json texts_json(const std::vector<WrittenSample>& samples, const PageLimits& limits) {
  constexpr std::size_t kMaxTextBytes = 2000;
  std::vector<double> steps;
  for (const WrittenSample& sample : samples) steps.push_back(sample.step);
  Json json = Json::array();
  for (const std::size_t i : kept_points(steps, limits.records)) {
    json.push_back({{"step", shown_json(samples[i].step)},
                    {"text", printable_lines(std::string_view(samples[i].text).substr(0, kMaxTextBytes))}});
  }
  return json;
}

// The evaluations of the kept weights, and of the last ones where they are others: "last validation".
Json results_json(const PageRun& run) {
  Json json = Json::array();
  const auto add = [&](const std::string& name, const EvaluationFigures& figures) {
    Json values = Json::array();
    for (const auto& [measure, value] : figures.values) {
      values.push_back({measure, value, smaller_is_better(measure)});
    }
    json.push_back({{"name", name}, {"step", figures.step}, {"values", values}});
  };
  for (const auto& [split, figures] : run.record.figures) add(split, figures);
  for (const auto& [split, figures] : run.record.last) {
    if (has_other_last(run, split)) add("last " + split, figures);
  }
  return shown_json(json);
}

// How the run went: the weights that it kept, and the times and gradients of its ranks.
void add_course(const PageRun& run, Json& json) {
  if (run.record.is_complete()) {
    json["kept"] = kept_json(run);
    for (const char* part : {"compute", "communication", "waiting", "data", "idle"})
      json["time"][part] = shown_json(time_share(run, part));
  }
  if (run.metrics.ranks.ranks.size() > 1) json["ranks"] = ranks_json(run.metrics.ranks.ranks);
  json["workers"] = Json::array();
  for (const WorkerRecord& worker : run.metrics.workers) {
    json["workers"].push_back({{"computed", worker.computed},
                               {"samples", worker.samples},
                               {"dropped", worker.dropped},
                               {"staleness", worker.staleness}});
  }
}

Json run_json(const PageRun& run, bool alone, const PageLimits& limits) {
  Json json{{"name", shown_json(run.name)},
            {"short_name", shown_json(run.short_name())},
            {"state", run.state()},
            {"reason", shown_json(run.record.reason, kMaxSentenceBytes)},
            {"scaled_label", shown_json(run.record.scaled_label)},
            {"positive", shown_json(run.record.positive)},
            {"faults", shown_json(run.metrics.faults, kMaxSentenceBytes)},
            {"warnings", shown_json(run.record.warnings, kMaxSentenceBytes)},
            {"slow", slow_json(run.metrics.ranks)},
            {"steps", run.record.progress.steps},
            {"samples", run.record.progress.samples},
            {"epochs", shown_json(run.record.progress.epochs)},
            {"seconds", shown_json(run.record.seconds)},
            {"results", results_json(run)},
            {"curves", Json::array()}};
  add_curves("train", run.metrics.train, limits, json["curves"]);
  for (const EvaluationHistory& each : run.metrics.evaluations)
    add_curves(each.split, each.table, limits, json["curves"]);
  if (const DecidingFigure* best = run.record.decides()) {
    json["best"] = shown_json({{"split", best->split},
                               {"measure", best->measure},
                               {"value", best->value},
                               {"smaller_is_better", smaller_is_better(best->measure)}});
  }
  add_course(run, json);
  if (const EvaluationHistory* shown = shown_confusion(run))
    json["confusion"] = confusion_json(*shown, run.classes, run.record.result);
  json["predictions"] = predictions_json(run.predictions, alone, limits);
  json["forecasts"] = forecasts_json(run.record.forecasts, limits);
  json["texts"] = texts_json(run.metrics.texts, limits);
  if (const Json reliability = reliability_json(run.record.result); !reliability.is_null()) {
    json["reliability"] = reliability;
  }
  if (!run.importance.is_null()) json["importance"] = run.importance;
  if (!run.columns.empty()) json["columns"] = columns_json(run.columns);
  add_words(run, json);
  return json;
}

// In one line of ASCII characters, without "<", so that it may stand in a <script>.
std::string to_text(const std::vector<PageRun>& runs, const PageLimits& limits) {
  Json json{{"runs", Json::array()}, {"differing", shown_json(differing_keys(runs))}};
  for (const PageRun& run : runs) json["runs"].push_back(run_json(run, runs.size() == 1, limits));
  std::string text;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

void add_importance(PageRun& run, const std::string& text) {
  constexpr std::size_t kMaxBars = 20;
  static const auto kForm = Json::parse(
      R"({"measure": "", "set": "", "baseline": null, "columns": [{"column": "", "importance": null}]})");
  Json shown = read_as(kForm, parse_json<Json>(text));
  auto& columns = shown["columns"].get_ref<Json::array_t&>();
  columns.resize(std::min(columns.size(), kMaxBars));
  if (!columns.empty()) run.importance = shown;
}

std::string describe_values(const Json& column) {
  const auto values = column.find("values");
  if (values == column.end() || !values->is_array()) {
    return fmt::format("{:.5g} to {:.5g}, mean {:.5g}", number_or_zero(column, "min"),
                       number_or_zero(column, "max"), number_or_zero(column, "mean"));
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (const Json& value : *values) {
    if (value.is_string() && shown.size() < kShown) shown.push_back(value.get<std::string>());
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     values->size() > kShown ? fmt::format(", ... ({} in all)", values->size()) : "");
}

void add_schema(PageRun& run, const std::string& text) {
  const auto json = parse_json<Json>(text);
  for (const Json& column : part_of(json, "columns")) {
    if (!column.is_object()) throw DataError("a column is no object");
    const bool seen = text_at(column, "use") != "ignore";  // else the schema has its name alone
    run.columns.push_back({text_at(column, "name"), text_at(column, "use"), text_at(column, "kind"),
                           seen ? count_text(number_or_zero(column, "missing_count")) : "",
                           seen ? describe_values(column) : ""});
    const auto values = column.find("values");
    if (text_at(column, "use") != "label" || values == column.end() || !values->is_array()) continue;
    for (const Json& value : *values)
      run.classes.push_back(value.is_string() ? value.get<std::string>() : "");
  }
}

}  // namespace

Json shown_json(const Json& json, std::size_t max_bytes) {
  if (json.is_string()) return excerpt(json.get_ref<const std::string&>(), max_bytes);
  if (json.is_number_float()) return number_json(json.get<double>());
  if (!json.is_structured()) return json;
  Json copy = json;
  for (Json& each : copy) each = shown_json(each, max_bytes);
  return copy;
}

PageRun read_page_run(ViewedRun viewed, const RunDirectory& directory) {
  PageRun run{std::move(viewed)};
  const auto add = [&](const std::filesystem::path& file, void (*part)(PageRun&, const std::string&)) {
    if (!is_there(file)) return;
    try {
      const std::string text = read_file(file);
      if (!text.empty()) part(run, text);
    } catch (const std::exception& error) {
      run.record.warnings.push_back(
          fmt::format("{} cannot be read: {}", file.filename().string(), error.what()));
    }
  };
  add(directory.evaluation(),
      [](PageRun& page, const std::string& text) { page.predictions = read_shown_predictions(text); });
  add(directory.importance(), add_importance);
  add(directory.schema(), add_schema);
  return run;
}

std::string report_json(const std::vector<PageRun>& runs) {
  constexpr std::size_t kMaxRuns = 40;
  constexpr std::size_t kMinPoints = 30;
  constexpr std::size_t kMinRecords = 5;
  const std::size_t max_bytes = kMaxPageBytes - page_parts().before.size() - page_parts().after.size();
  PageLimits limits{.points = kMaxChartPoints * 2 / std::clamp(runs.size(), std::size_t{2}, kMaxRuns),
                    .records = 20};
  while (runs.size() <= kMaxRuns && limits.points >= kMinPoints) {
    std::string text = to_text(runs, limits);
    if (text.size() <= max_bytes) return text;
    limits = {.points = limits.points / 2, .records = std::max(limits.records / 2, kMinRecords)};
  }
  throw ConfigError(
      "{} runs are too many for one page of {} bytes, or have too much in them: give at most {} to a report",
      runs.size(), kMaxPageBytes, kMaxRuns);
}

std::string report_page(const std::vector<PageRun>& runs) {
  std::string page(page_parts().before);
  page += report_json(runs);
  return page += page_parts().after;
}

}  // namespace lockstep
