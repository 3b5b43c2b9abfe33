#include "bench_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "build_facts.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e6;
constexpr double kNano = 1e9;

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "";
}

// What bf16 is held against: the limit of fp32 is not its own.
std::string of_fp32(const BenchReport& report) {
  return report.precision == "fp32" ? "" : " in fp32, which the instructions for bf16 can exceed";
}

std::string micro(double seconds) {
  return seconds > 0 ? fmt::format("{:.1f} us", seconds * kMicro) : "";
}

std::string machine_text(const BenchReport& report) {
  return fmt::format(
      "machine: {} rank{} on {} host{}, all busy; limits of a thread\n"
      "  fp32 multiply-adds  {:8.1f} GFLOP/s\n"
      "  copy in cache       {:8.1f} GB/s, read and written\n"
      "  copy in memory      {:8.1f} GB/s\n",
      report.ranks, report.ranks == 1 ? "" : "s", report.hosts, report.hosts == 1 ? "" : "s",
      report.machine.flops / kGiga, report.machine.cache_bandwidth / kGiga,
      report.machine.memory_bandwidth / kGiga);
}

std::string rate_text(Index flops, double seconds, double limit) {
  if (flops == 0) return fmt::format("{:9.1f} us {:>9} {:>6}", seconds * kMicro, "", "");
  const double rate = static_cast<double>(flops) / seconds;
  return fmt::format("{:9.1f} us {:9.1f} {:>6}", seconds * kMicro, rate / kGiga, percent(rate, limit));
}

std::string nodes_text(const BenchReport& report) {
  std::string text = fmt::format(
      "\nmodel: a batch of {} samples on a rank, in {}; limit: multiply-adds{}\n"
      "{:<44} {:>12} {:>9} {:>6} {:>12} {:>9} {:>6}\n",
      report.rows, report.precision, of_fp32(report), "", "forward", "GFLOP/s", "limit", "backward",
      "GFLOP/s", "limit");
  for (const NodeRate& node : report.nodes) {
    text += fmt::format("  {:<42} {} {}\n", node.title,
                        rate_text(node.forward_flops, node.forward_seconds, report.machine.flops),
                        rate_text(node.backward_flops, node.backward_seconds, report.machine.flops));
  }
  return text;
}

// A sum over N ranks sends and receives 2 (N - 1) / N of the bytes at least: through memory, each is read and
// written.
std::string exchanges_text(const BenchReport& report) {
  if (report.ranks == 1) return "";
  std::string text =
      "\nexchange: MPI_Allreduce of floats (limit: 2 (N - 1) / N of the bytes copied in memory), a message "
      "to "
      "and from\na neighbour on the host, and a sum in memory that the ranks of a host share\n";
  const double share = 2 * static_cast<double>(report.ranks - 1) / static_cast<double>(report.ranks);
  for (const ExchangeRate& exchange : report.exchanges) {
    const double copied = 2 * share * static_cast<double>(exchange.bytes) / exchange.seconds;
    text += fmt::format("  {:>10} {:10.1f} us {:8.2f} GB/s {:>6} {:>13} {:>13}\n",
                        human_bytes(static_cast<double>(exchange.bytes)), exchange.seconds * kMicro,
                        static_cast<double>(exchange.bytes) / exchange.seconds / kGiga,
                        percent(copied, report.machine.memory_bandwidth), micro(exchange.message_seconds),
                        micro(exchange.shared_seconds));
  }
  if (report.cache_line_seconds > 0) {
    text += fmt::format("  a cache line to a neighbour on the host and back takes {:.0f} ns\n",
                        report.cache_line_seconds * kNano);
  }
  return text;
}

std::string algorithms_text(const BenchReport& report) {
  if (report.algorithms.empty()) return "";
  std::string text = "\nexchange of gradients by distribute.algorithm, in us\n            ";
  Index bytes = report.algorithms.front().bytes;
  for (const AlgorithmRate& rate : report.algorithms) {
    if (rate.bytes == bytes) text += fmt::format(" {:>13}", rate.name);
  }
  bytes = 0;
  for (const AlgorithmRate& rate : report.algorithms) {
    if (rate.bytes != bytes) text += fmt::format("\n  {:>10}", human_bytes(static_cast<double>(rate.bytes)));
    bytes = rate.bytes;
    text += fmt::format(" {:13.1f}", rate.seconds * kMicro);
  }
  return text + "\n";
}

std::string updates_text(const BenchReport& report) {
  std::string text = "\nexchange and step of SGD with momentum\n";
  double yardstick = 0;
  Index weights = 0;
  for (const UpdateRate& update : report.updates) {
    if (update.weights != weights) yardstick = update.seconds;
    weights = update.weights;
    text += fmt::format("  {:>12} weights  {:<30} {:10.1f} us  {:5.2f} times as fast\n",
                        with_commas(update.weights), update.name, update.seconds * kMicro,
                        yardstick / update.seconds);
  }
  return text;
}

std::string step_text(const BenchReport& report) {
  const StepRate& step = report.step;
  const double backward = step.time.compute - step.time.forward - step.time.optimizer;
  std::string text =
      fmt::format("\ntraining step: {:.0f} samples in {:.1f} us, {} samples/s\n", step.samples,
                  step.seconds * kMicro, with_commas(static_cast<Index>(step.samples_per_second)));
  const std::pair<const char*, double> parts[] = {{"data", step.time.data},
                                                  {"forward", step.time.forward},
                                                  {"backward", backward},
                                                  {"optimizer", step.time.optimizer},
                                                  {"exchange", step.time.communication},
                                                  {"waiting", step.time.waiting}};
  for (const auto& [name, share] : parts) {
    text +=
        fmt::format("  {:<10} {:10.1f} us {:>6}\n", name, share * step.seconds * kMicro, percent(share, 1));
  }
  const double limit = static_cast<double>(report.ranks * step.threads) * report.machine.flops;
  return text + fmt::format("  achieved {:.1f} GFLOP/s, {} of the limit of all threads{}\n",
                            step.flops / kGiga, percent(step.flops, limit), of_fp32(report));
}

}  // namespace

std::string to_text(const BenchReport& report) {
  return machine_text(report) + nodes_text(report) + exchanges_text(report) + algorithms_text(report) +
         updates_text(report) + step_text(report);
}

std::string to_json(const BenchReport& report) {
  Json json{{"ranks", report.ranks},
            {"hosts", report.hosts},
            {"cores", report.cores},
            {"parameters", report.parameters},
            {"rows", report.rows},
            {"precision", report.precision},
            {"machine",
             {{"flops", report.machine.flops},
              {"cache_bandwidth", report.machine.cache_bandwidth},
              {"memory_bandwidth", report.machine.memory_bandwidth}}},
            {"cache_line_seconds", report.cache_line_seconds},
            {"nodes", Json::array()},
            {"passes", Json::array()},
            {"exchanges", Json::array()},
            {"algorithms", Json::array()},
            {"updates", Json::array()}};
  for (const NodeRate& node : report.nodes) {
    json["nodes"].push_back({{"title", node.title},
                             {"forward_flops", node.forward_flops},
                             {"backward_flops", node.backward_flops},
                             {"forward_seconds", node.forward_seconds},
                             {"backward_seconds", node.backward_seconds}});
  }
  for (const PassRate& pass : report.passes) {
    json["passes"].push_back({{"rows", pass.rows}, {"seconds", pass.seconds}});
  }
  for (const ExchangeRate& exchange : report.exchanges) {
    json["exchanges"].push_back({{"bytes", exchange.bytes},
                                 {"seconds", exchange.seconds},
                                 {"message_seconds", exchange.message_seconds},
                                 {"shared_seconds", exchange.shared_seconds}});
  }
  for (const AlgorithmRate& rate : report.algorithms) {
    json["algorithms"].push_back({{"name", rate.name}, {"bytes", rate.bytes}, {"seconds", rate.seconds}});
  }
  for (const UpdateRate& update : report.updates) {
    json["updates"].push_back(
        {{"name", update.name}, {"weights", update.weights}, {"seconds", update.seconds}});
  }
  const StepRate& step = report.step;
  json["step"] = {{"seconds", step.seconds},
                  {"samples", step.samples},
                  {"workers", step.workers},
                  {"replicas", step.replicas},
                  {"threads", step.threads},
                  {"accumulate", step.accumulate},
                  {"stepped", step.stepped},
                  {"samples_per_second", step.samples_per_second},
                  {"flops", step.flops},
                  {"data", step.time.data},
                  {"forward", step.time.forward},
                  {"backward", step.time.compute - step.time.forward - step.time.optimizer},
                  {"optimizer", step.time.optimizer},
                  {"exchange", step.time.communication},
                  {"waiting", step.time.waiting}};
  return json.dump(2) + "\n";
}

}  // namespace lockstep
