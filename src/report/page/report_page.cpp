// Runs as the JSON that the page draws. A text is in it as excerpt() has it: without control characters and
// marks that turn the direction of writing, and not longer than a page needs. A number is null where it is
// not finite.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/page/report_page.h"
#include "lockstep/report/tables/evaluation_tables.h"
#include "page_parts.h"
#include "report/history/run_numbers.h"
#include "run_story.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxNameBytes = 200;
constexpr std::size_t kMaxValueBytes = 400;
constexpr std::size_t kMaxSentenceBytes = 1000;

/// The most that is shown of a run.
struct PageLimits {
  std::size_t points = 0;   ///< of a series
  std::size_t records = 0;  ///< that are predicted worst
};

Json texts_json(const std::vector<std::string>& texts, std::size_t max_bytes) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(excerpt(text, max_bytes));
  return json;
}

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

// Norms are measured now and then: lines without them are no gaps.
bool is_rarely_measured(const std::string& name) {
  return name == "gradient_norm" || name == "weight_norm";
}

MetricsTable measured_lines(const MetricsTable& table, const MetricsTable::Column& column) {
  MetricsTable lines{.columns = {{column.name, {}}}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (is_rarely_measured(column.name) && std::isnan(column.values[row])) continue;
    lines.steps.push_back(table.steps[row]);
    lines.samples.push_back(table.samples[row]);
    lines.seconds.push_back(table.seconds[row]);
    lines.columns.front().values.push_back(column.values[row]);
  }
  return lines;
}

// Each measure of one set over the steps, the samples and the time of training.
void add_curves(const std::string& split, const MetricsTable& table, const PageLimits& limits, Json& curves) {
  constexpr int kCountDigits = 15;
  constexpr int kTimeDigits = 5;
  for (const MetricsTable::Column& column : table.columns) {
    if (!is_measure(column.name) || column.name.starts_with("time.")) continue;
    const MetricsTable lines = measured_lines(table, column);
    const std::vector<double>& values = lines.columns.front().values;
    if (values.empty()) continue;
    const std::vector<std::size_t> points = kept_points(values, limits.points);
    curves.push_back({{"measure", excerpt(column.name, kMaxNameBytes)},
                      {"title", excerpt(measure_title(column.name), kMaxNameBytes)},
                      {"split", excerpt(split, kMaxNameBytes)},
                      {"points", lines.rows()},
                      {"step", numbers_json(lines.steps, points, kCountDigits)},
                      {"samples", numbers_json(lines.samples, points, kCountDigits)},
                      {"seconds", numbers_json(lines.seconds, points, kTimeDigits)},
                      {"y", numbers_json(values, points)}});
  }
}

// The step of the kept weights, to be marked in curves.
Json kept_json(const PageRun& run) {
  const auto step = static_cast<double>(run.record.kept.step);
  const double samples = run.steps() > 0 ? std::round(run.samples() * step / run.steps()) : 0;
  const double seconds = run.metrics.train.rows() > 0 ? run.metrics.seconds_at(samples) : 0;
  return {{"step", number_json(step)}, {"samples", number_json(samples)}, {"seconds", number_json(seconds)}};
}

// The ranks, and of many those that wait least, as the others wait for them.
Json ranks_json(const std::vector<RankTime>& ranks) {
  constexpr std::size_t kMaxRanks = 64;
  constexpr std::size_t kMaxHostBytes = 40;
  Json json{{"count", ranks.size()}, {"shown", Json::array()}};
  for (const std::size_t rank : ranks_waiting_least(ranks, kMaxRanks)) {
    const RankTime& time = ranks[rank];
    json["shown"].push_back({{"rank", rank},
                             {"host", excerpt(time.host, kMaxHostBytes)},
                             {"compute", number_json(time.compute)},
                             {"exchange", number_json(time.exchange)},
                             {"waiting", number_json(time.waiting)},
                             {"data", number_json(time.data)}});
  }
  return json;
}

Json workers_json(const std::vector<WorkerHistory>& workers) {
  Json json = Json::array();
  for (const WorkerHistory& worker : workers) {
    json.push_back({{"computed", worker.computed},
                    {"samples", worker.samples},
                    {"dropped", worker.dropped},
                    {"staleness", worker.staleness}});
  }
  return json;
}

Json confusion_json(const EvaluationHistory& shown, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxClassBytes = 60;
  Json json{{"split", excerpt(shown.split, kMaxNameBytes)},
            {"step", number_json(shown.confusion_step)},
            {"classes", Json::array()},
            {"counts", shown.confusion},
            {"scores", Json::array()}};
  for (const ClassScore& score : class_scores(shown.confusion)) {
    json["classes"].push_back(excerpt(class_name(names, json["classes"].size()), kMaxClassBytes));
    json["scores"].push_back({{"samples", score.samples},
                              {"precision", number_json(score.precision)},
                              {"recall", number_json(score.recall)},
                              {"f1", number_json(score.f1)}});
  }
  return json;
}

// Precision swings, while the others only rise: it decides which points stay.
Json curves_json(const std::vector<ShownPredictions::Curve>& curves, std::size_t max_points) {
  Json json = Json::array();
  for (const ShownPredictions::Curve& curve : curves) {
    const auto points = kept_points(curve.precision, std::max<std::size_t>(max_points / curves.size(), 50));
    json.push_back({{"class", excerpt(curve.name, kMaxNameBytes)},
                    {"area", number_json(curve.area)},
                    {"recall", numbers_json(curve.recall, points)},
                    {"false_positive_rate", numbers_json(curve.false_positive_rate, points)},
                    {"precision", numbers_json(curve.precision, points)}});
  }
  return json;
}

Json worst_json(const ShownPredictions::Worst& record) {
  Json json{{"record", number_json(record.record)},
            {"file", excerpt(record.file, kMaxNameBytes)},
            {"loss", number_json(record.loss)},
            {"target", excerpt(record.target, kMaxNameBytes)},
            {"prediction", excerpt(record.prediction, kMaxNameBytes)},
            {"cells", texts_json(record.cells, kMaxNameBytes)}};
  if (!record.picture.pixels.empty()) json["picture"] = to_json(record.picture);
  return json;
}

// Curves of several classes cannot be laid over those of other runs.
Json predictions_json(const ShownPredictions& shown, bool alone, const PageLimits& limits) {
  const bool comparable = alone || shown.curves.size() == 1;
  Json json{{"split", excerpt(shown.split, kMaxNameBytes)},
            {"samples", number_json(shown.samples)},
            {"curves", comparable ? curves_json(shown.curves, limits.points) : Json::array()},
            {"fits", Json::array()},
            {"columns", texts_json(shown.columns, kMaxNameBytes)},
            {"worst", Json::array()}};
  for (const ShownPredictions::Fit& fit : shown.fits) {
    const std::vector<std::size_t> points = kept_points(fit.prediction, limits.points);
    const std::vector<std::size_t> bins = kept_points(fit.residuals, fit.residuals.size());
    json["fits"].push_back({{"samples", fit.target.size()},
                            {"target", numbers_json(fit.target, points)},
                            {"prediction", numbers_json(fit.prediction, points)},
                            {"width", number_json(fit.width)},
                            {"residuals", numbers_json(fit.residuals, bins)}});
  }
  for (std::size_t i = 0; i < std::min(shown.worst.size(), limits.records); ++i)
    json["worst"].push_back(worst_json(shown.worst[i]));
  return json;
}

// Shares of the time of all steps.
Json time_json(const PageRun& run) {
  Json json = Json::object();
  for (const char* part : {"compute", "communication", "waiting", "data", "idle"}) {
    json[part] = number_json(time_share(run, part));
  }
  return json;
}

// Null where it is not there.
Json part_of(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) ? json[name] : Json();
}

// How predictions of about one probability came true, of the last evaluation; null where they are none.
Json reliability_json(const Json& result) {
  const Json evaluation = part_of(result, "evaluation");
  const Json split = part_of(evaluation, "split");
  Json json;
  for (const Json& bin : part_of(evaluation, "reliability")) {
    json["split"] = split.is_string() ? excerpt(split.get<std::string>(), kMaxNameBytes) : "";
    for (const char* part : {"predicted", "observed", "samples"}) json[part].push_back(part_of(bin, part));
  }
  return json;
}

Json importance_json(const ImportanceOfRun& importance) {
  constexpr std::size_t kMaxBars = 20;
  Json json{{"measure", excerpt(importance.measure, kMaxNameBytes)},
            {"set", excerpt(importance.set, kMaxNameBytes)},
            {"baseline", number_json(importance.baseline)},
            {"columns", Json::array()}};
  for (const ImportanceOfColumn& column : importance.columns) {
    if (json["columns"].size() == kMaxBars) break;
    json["columns"].push_back(
        {{"name", excerpt(column.name, kMaxNameBytes)}, {"mean", number_json(column.mean)}});
  }
  return json;
}

Json columns_json(const std::vector<std::vector<std::string>>& columns) {
  constexpr std::size_t kMaxTableColumns = 200;
  Json json{{"count", columns.size()}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < std::min(columns.size(), kMaxTableColumns); ++i)
    json["rows"].push_back(texts_json(columns[i], kMaxNameBytes));
  return json;
}

Json rows_json(const std::vector<std::vector<std::string>>& rows) {
  Json json = Json::array();
  for (const std::vector<std::string>& row : rows) json.push_back(texts_json(row, kMaxValueBytes));
  return json;
}

// Host and cores of the first 2,000 ranks.
Json placement_json(const Launch& launch) {
  constexpr std::size_t kMaxRanks = 2000;
  const std::size_t ranks = std::min(launch.hosts.size(), launch.cores.size());
  Json json = Json::array();
  for (std::size_t rank = 0; rank < std::min(ranks, kMaxRanks); ++rank) {
    json.push_back({fmt::format("{}", rank), excerpt(launch.hosts[rank], kMaxNameBytes),
                    excerpt(launch.cores[rank], kMaxNameBytes)});
  }
  if (ranks > kMaxRanks) json.push_back({"...", "", ""});
  return json;
}

void add_words(const PageRun& run, Json& json) {
  const RunRecord& record = run.record;
  json["plan"] = rows_json(record.plan.table);
  json["sentences"] = texts_json(record.plan.sentences, kMaxSentenceBytes);
  json["model"] = rows_json(record.plan.model);
  json["stages"] = rows_json(record.plan.stages);
  json["config"] = Json::array();
  for (const ConfigLine& line : run.config) {
    json["config"].push_back({{"key", excerpt(line.key, kMaxNameBytes)},
                              {"value", excerpt(line.value, kMaxNameBytes)},
                              {"default", excerpt(line.by_default, kMaxNameBytes)}});
  }
  json["launch"] = record.launch.hosts.empty() ? "" : excerpt(record.launch.describe(), kMaxValueBytes);
  json["algorithm"] = excerpt(record.launch.algorithm, kMaxNameBytes);
  json["placement"] = placement_json(record.launch);
}

Json run_json(const PageRun& run, bool alone, const PageLimits& limits) {
  Json json{{"name", excerpt(run.name, kMaxNameBytes)},
            {"short_name", excerpt(run.short_name(), kMaxNameBytes)},
            {"state", excerpt(run.state(), kMaxNameBytes)},
            {"story", texts_json(tell_story(run), kMaxSentenceBytes)},
            {"look_at", texts_json(things_to_look_at(run), kMaxSentenceBytes)},
            {"steps", number_json(run.steps())},
            {"samples", number_json(run.samples())},
            {"epochs", number_json(run.record.progress.epochs)},
            {"seconds", number_json(run.record.seconds)},
            {"curves", Json::array()}};
  add_curves("train", run.metrics.train, limits, json["curves"]);
  for (const EvaluationHistory& each : run.metrics.evaluations)
    add_curves(each.split, each.table, limits, json["curves"]);
  if (run.record.is_complete()) json["kept"] = kept_json(run);
  if (run.record.is_complete()) json["time"] = time_json(run);
  if (run.metrics.ranks.ranks.size() > 1) json["ranks"] = ranks_json(run.metrics.ranks.ranks);
  json["workers"] = workers_json(run.metrics.workers);
  if (const EvaluationHistory* shown = shown_confusion(run))
    json["confusion"] = confusion_json(*shown, run.classes);
  json["predictions"] = predictions_json(run.predictions, alone, limits);
  if (const Json reliability = reliability_json(run.record.result); !reliability.is_null()) {
    json["reliability"] = reliability;
  }
  if (!run.importance.columns.empty()) json["importance"] = importance_json(run.importance);
  if (!run.columns.empty()) json["columns"] = columns_json(run.columns);
  add_words(run, json);
  return json;
}

// The keys that decide what comes of a run and whose values differ. Configs that can be read have all keys,
// in one order.
Json differing_json(const std::vector<PageRun>& runs) {
  Json json = Json::array();
  const auto read = std::ranges::find_if(runs, [](const PageRun& run) { return !run.config.empty(); });
  if (read == runs.end()) return json;
  for (const ConfigLine& line : read->config) {
    std::set<std::string> values;
    for (const PageRun& run : runs) {
      if (!run.config.empty()) values.insert(run.value(line.key));
    }
    if (values.size() > 1 && !names_no_result(line.key)) json.push_back(excerpt(line.key, kMaxNameBytes));
  }
  return json;
}

// In one line of ASCII characters, without "<", so that it may stand in a <script>.
std::string to_text(const std::vector<PageRun>& runs, const PageLimits& limits) {
  Json json{{"runs", Json::array()}, {"differing", differing_json(runs)}};
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

}  // namespace

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
  throw ConfigError(fmt::format(
      "{} runs are too many for one page of {} bytes, or have too much in them: give at most {} to a report",
      runs.size(), kMaxPageBytes, kMaxRuns));
}

std::string report_page(const std::vector<PageRun>& runs) {
  std::string page(page_parts().before);
  page += report_json(runs);
  return page += page_parts().after;
}

}  // namespace lockstep
