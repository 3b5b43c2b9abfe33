#include "lockstep/report/tables/scale_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string machines_text(const ScaleReport& report) {
  const ClusterRequest& cluster = report.cluster;
  const BenchFigures& measured = report.measured;
  std::string text =
      fmt::format("{} of {}", plural(cluster.nodes, "node"), plural(cluster.ranks_per_node, "rank"));
  if (cluster.nodes > 1) {
    text += fmt::format("; between nodes {} and {:.4g} Gbit/s each way, shared by the ranks of a node",
                        duration(cluster.latency), cluster.bandwidth * 8 / 1e9);
  }
  text += fmt::format("\ncomputing and messages inside a node as measured: {} ({} on {} of {})\n",
                      report.bench, plural(measured.ranks, "rank"), plural(measured.hosts, "host"),
                      plural(measured.cores, "core"));
  const double oversubscription = report.sections.front().growth.front().forecast.oversubscription;
  if (oversubscription > 1) {
    text += fmt::format(
        "{:.3g} threads share each core of a node, which takes as many times longer: --cores-per-node, if "
        "they have more\n",
        oversubscription);
  }
  return text +
         fmt::format(
             "gradient: {}. Between nodes, buckets of it are hidden behind the backward pass of a rank's "
             "last replica as far\nas they can be; what ranks do themselves, inside a node, is not. "
             "(--distribute."
             "bucket_kib {} hides nothing.)\n",
             human_bytes(report.gradient_bytes), report.gradient_bytes / 1024 + 1);
}

std::string scaling_text(const ScaleSection& section, const BenchFigures& measured) {
  if (section.scaling == Scaling::kStrong) {
    return "\nstrong scaling: the global batch of the config, divided over ever more ranks\n";
  }
  const RankWork& work = measured.work;
  return fmt::format("\nweak scaling: each worker keeps the batch that was measured, {} of {}\n",
                     plural(work.replicas, "replica"), plural(work.rows * measured.accumulate, "sample"));
}

std::string forecast_cells(const Forecast& forecast) {
  return fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10} {:>13} {:>8.0f} %", duration(forecast.compute),
                     duration(forecast.waiting), duration(forecast.exchange), duration(forecast.exposed),
                     duration(forecast.seconds()),
                     with_commas(static_cast<Index>(forecast.samples_per_second())),
                     100 * forecast.efficiency());
}

constexpr const char* kForecastHeads =
    "   compute    waiting   exchange    exposed       step     samples/s efficiency";

std::string name_of(const ForecastRow& row) {
  return row.strategy + (row.divides_layers ? ", split" : "");
}

std::string ways_text(const ScaleSection& section) {
  if (section.ways.empty()) return fmt::format("  not so far: {}\n", section.refused.front());
  std::string text = fmt::format("  {:<17} {:<13} {}\n", "strategy", "algorithm", kForecastHeads);
  for (const ForecastRow& row : section.ways) {
    text += fmt::format("  {:<17} {:<13} {}\n", name_of(row), row.algorithm, forecast_cells(row.forecast));
  }
  const ForecastRow& fastest = *std::ranges::max_element(
      section.ways, {}, [](const ForecastRow& row) { return row.forecast.samples_per_second(); });
  text += fmt::format("  fastest: {}{}{}\n", name_of(fastest),
                      fastest.algorithm.empty() ? "" : ", algorithm ", fastest.algorithm);
  for (const std::string& refusal : section.refused) text += fmt::format("  {}\n", refusal);
  return text;
}

std::string growth_text(const ScaleSection& section, const std::string& exchange) {
  if (section.growth.empty()) return "";
  std::string text =
      fmt::format("\n  {}:\n  {:>8} {:>9} {:>11} {}\n", exchange, "nodes", "ranks", "batch", kForecastHeads);
  for (const GrowthRow& row : section.growth) {
    text += fmt::format("  {:>8} {:>9} {:>11} {}\n", with_commas(row.nodes), with_commas(row.forecast.ranks),
                        with_commas(row.forecast.global_batch), forecast_cells(row.forecast));
  }
  if (!section.ended.empty()) text += fmt::format("  ends here: {}\n", section.ended);
  return text;
}

Json forecast_json(const Forecast& forecast) {
  return {{"ranks", forecast.ranks},
          {"global_batch", forecast.global_batch},
          {"compute", forecast.compute},
          {"waiting", forecast.waiting},
          {"exchange", forecast.exchange},
          {"exposed", forecast.exposed},
          {"seconds", forecast.seconds()},
          {"samples_per_second", forecast.samples_per_second()},
          {"efficiency", forecast.efficiency()}};
}

Json forecast_json(const ScaleSection& section) {
  Json json{{"ways", Json::array()}, {"growth", Json::array()}};
  for (const ForecastRow& row : section.ways) {
    Json way = forecast_json(row.forecast);
    way["strategy"] = row.strategy;
    way["algorithm"] = row.algorithm;
    way["divides_layers"] = row.divides_layers;
    json["ways"].push_back(way);
  }
  for (const GrowthRow& row : section.growth) {
    Json step = forecast_json(row.forecast);
    step["nodes"] = row.nodes;
    json["growth"].push_back(step);
  }
  return json;
}

}  // namespace

std::string to_text(const ScaleReport& report) {
  std::string text = machines_text(report);
  if (!report.note_on_order.empty()) text += report.note_on_order + "\n";
  for (const ScaleSection& section : report.sections) {
    text +=
        scaling_text(section, report.measured) + ways_text(section) + growth_text(section, report.exchange);
  }
  return text;
}

std::string to_json(const ScaleReport& report) {
  Json json{{"nodes", report.cluster.nodes},
            {"ranks_per_node", report.cluster.ranks_per_node},
            {"latency", report.cluster.latency},
            {"bandwidth", report.cluster.bandwidth}};
  for (const ScaleSection& section : report.sections) {
    json[section.scaling == Scaling::kWeak ? "weak" : "strong"] = forecast_json(section);
  }
  return json.dump(2) + "\n";
}

}  // namespace lockstep
