#include "metrics_json.h"

#include <cmath>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json confusion_json(const EvalMetrics& metrics) {
  Json rows = Json::array();
  const auto classes = static_cast<std::size_t>(metrics.classes);
  for (std::size_t row = 0; row < classes; ++row) {
    const auto first = metrics.confusion.begin() + static_cast<std::ptrdiff_t>(row * classes);
    rows.push_back(std::vector<Index>(first, first + metrics.classes));
  }
  return rows;
}

}  // namespace

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
    workers.push_back({{"computed", worker.computed},
                       {"steps", worker.steps},
                       {"samples", worker.samples},
                       {"dropped", worker.dropped},
                       {"dropped_samples", worker.dropped_samples},
                       {"max_ahead", worker.max_ahead},
                       {"staleness", worker.staleness}});
  }
  return {{"mean_staleness", report.mean_staleness()},
          {"staleness_95", report.staleness_percentile(0.95)},
          {"workers", workers}};
}

// A list of each number, with one entry for each rank: short, and easy to turn into columns.
Json ranks_json(const RankTimes& times) {
  Json json{{"seconds", times.seconds}, {"windows", times.windows}};
  const auto add = [&](const char* name, const auto& of_rank) {
    Json all = Json::array();
    for (const RankTime& time : times.ranks) all.push_back(of_rank(time));
    json[name] = all;
  };
  const auto rounded = [](double value) { return std::round(1e6 * value) / 1e6; };
  add("host", [](const RankTime& time) { return excerpt(time.host); });
  add("data", [&](const RankTime& time) { return rounded(time.data); });
  add("compute", [&](const RankTime& time) { return rounded(time.compute); });
  add("exchange", [&](const RankTime& time) { return rounded(time.exchange); });
  add("waiting", [&](const RankTime& time) { return rounded(time.waiting); });
  add("delay", [&](const RankTime& time) { return rounded(time.delay); });
  add("to_best", [&](const RankTime& time) { return rounded(time.to_best); });
  add("to_own", [&](const RankTime& time) { return rounded(time.to_own); });
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
  json["loss"] = metrics.loss;
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (metrics.top_k_accuracy) {
    json["top_k"] = metrics.top_k;
    json["top_k_accuracy"] = *metrics.top_k_accuracy;
  }
  for (const MetricValue& other : metrics.others) {
    json[other.name] = other.value ? Json(*other.value) : Json(nullptr);
  }
  if (!metrics.confusion.empty()) json["confusion"] = confusion_json(metrics);
  json["seconds"] = metrics.seconds;
  return json;
}

}  // namespace lockstep
