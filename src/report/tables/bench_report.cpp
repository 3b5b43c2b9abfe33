#include "lockstep/report/tables/tables.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/json.h"
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

// A remark that the limit is that of fp32, which bf16 can exceed.
std::string of_fp32(const BenchReport& report) {
  return report.precision == "fp32" ? "" : " in fp32, which the instructions for bf16 can exceed";
}

std::string machine_text(const BenchReport& report) {
  return fmt::format(
      "machine: {} on {}, all busy; limits of a thread\n"
      "  fp32 multiply-adds  {:8.1f} GFLOP/s\n"
      "  copy in cache       {:8.1f} GB/s, read and written\n"
      "  copy in memory      {:8.1f} GB/s\n",
      plural(report.ranks, "rank"), plural(report.hosts, "host"), report.machine.flops / kGiga,
      report.machine.cache_bandwidth / kGiga, report.machine.memory_bandwidth / kGiga);
}

std::string rate_text(Index flops, double seconds, double limit) {
  if (flops == 0) return fmt::format("{:9.1f} us {:>9} {:>6}", seconds * kMicro, "", "");
  const double rate = static_cast<double>(flops) / seconds;
  return fmt::format("{:9.1f} us {:9.1f} {:>6}", seconds * kMicro, rate / kGiga, percent(rate, limit));
}

std::string ops_text(const BenchReport& report) {
  std::string text = fmt::format(
      "\nmodel: a batch of {} on a rank, in {}; limit: multiply-adds{}\n"
      "{:<44} {:>12} {:>9} {:>6} {:>12} {:>9} {:>6}\n",
      plural(report.rows, "sample"), report.precision, of_fp32(report), "", "forward", "GFLOP/s", "limit",
      "backward", "GFLOP/s", "limit");
  for (const OpRate& op : report.ops) {
    text += fmt::format("  {:<42} {} {}\n", op.title,
                        rate_text(op.forward_flops, op.forward_seconds, report.machine.flops),
                        rate_text(op.backward_flops, op.backward_seconds, report.machine.flops));
  }
  return text;
}

// A sum over N ranks sends and receives 2 (N - 1) / N of the bytes at least: through memory, each is read and
// written.
double seconds_of_sum(const BenchReport& report, Index bytes) {
  const double share = 2 * static_cast<double>(report.ranks - 1) / static_cast<double>(report.ranks);
  return 2 * share * static_cast<double>(bytes) / report.machine.memory_bandwidth;
}

std::string exchanges_text(const BenchReport& report) {
  if (report.ranks == 1) return "";
  std::string text =
      "\nexchange: MPI_Allreduce of floats (limit: 2 (N - 1) / N of the bytes copied in memory)\n";
  for (const AlgorithmRate& exchange : report.exchanges) {
    text +=
        fmt::format("  {:>10} {:10.1f} us {:8.2f} GB/s {:>6}\n", human_bytes(exchange.bytes),
                    exchange.seconds * kMicro, static_cast<double>(exchange.bytes) / exchange.seconds / kGiga,
                    percent(seconds_of_sum(report, exchange.bytes), exchange.seconds));
  }
  if (report.cache_line_seconds > 0) {
    text += fmt::format("  a cache line to a neighbour on the host and back takes {:.0f} ns\n",
                        report.cache_line_seconds * kNano);
  }
  return text;
}

std::string algorithms_text(const BenchReport& report) {
  if (report.algorithms.empty()) return "";
  std::string text = "\nexchange of gradients by distribute.algorithm, in us (limit as above)\n            ";
  Index bytes = report.algorithms.front().bytes;
  for (const AlgorithmRate& rate : report.algorithms) {
    if (rate.bytes == bytes) text += fmt::format(" {:>13}", rate.name);
  }
  text += fmt::format(" {:>13}", "limit");
  const auto end_line = [&] {
    return bytes == 0 ? "" : fmt::format(" {:13.1f}", seconds_of_sum(report, bytes) * kMicro);
  };
  bytes = 0;
  for (const AlgorithmRate& rate : report.algorithms) {
    if (rate.bytes != bytes) {
      text += fmt::format("{}\n  {:>10}", end_line(), human_bytes(rate.bytes));
    }
    bytes = rate.bytes;
    text += fmt::format(" {:13.1f}", rate.seconds * kMicro);
  }
  text += end_line() + "\n";
  return report.note_on_order.empty() ? text : text + "  " + report.note_on_order + "\n";
}

std::string updates_text(const BenchReport& report) {
  std::string text =
      "\nexchange and step of SGD with momentum (limit: a rank's share of gradients, weights and velocity "
      "at the\nspeed of a copy in memory; what fits into caches can exceed it)\n";
  double yardstick = 0;
  Index weights = 0;
  for (const UpdateRate& update : report.updates) {
    if (update.weights != weights) yardstick = update.seconds;
    weights = update.weights;
    const double rate = update.least_bytes(report.ranks) / update.seconds;
    text += fmt::format("  {:>12} weights  {:<30} {:10.1f} us {:8.2f} GB/s {:>6}  {:5.2f} times as fast\n",
                        with_commas(update.weights), update.name, update.seconds * kMicro, rate / kGiga,
                        percent(rate, report.machine.memory_bandwidth), yardstick / update.seconds);
  }
  return text;
}

// A part of the step: its share of the time, and the work of all ranks beside the limit of all their threads.
struct PartRate {
  const char* name;
  double share;
  double done = 0;  // flops or bytes of all ranks in a step; 0: nothing is counted
  double limit = 0;
  const char* unit = "";
};

std::string part_text(const PartRate& part, double step_seconds) {
  const double seconds = part.share * step_seconds;
  std::string text =
      fmt::format("  {:<10} {:10.1f} us {:>6}", part.name, seconds * kMicro, percent(part.share, 1));
  if (part.done == 0 || seconds <= 0) return text + "\n";
  const double rate = part.done / seconds;
  return text + fmt::format(" {:10.1f} {:<7} {:>6}\n", rate / kGiga, part.unit, percent(rate, part.limit));
}

std::string step_text(const BenchReport& report) {
  const StepRate& step = report.step;
  const double backward = step.time.compute - step.time.forward - step.time.optimizer;
  const auto threads = static_cast<double>(step.workers * step.threads);
  const double flops = threads * report.machine.flops;
  const double bytes = threads * report.machine.memory_bandwidth;
  const SampleFlops sample = flops_per_sample(report);
  const auto ranks = static_cast<double>(step.workers);
  // Bytes that are sent are copied: read and written.
  const PartRate parts[] = {{"data", step.time.data},
                            {"forward", step.time.forward, step.samples * sample.forward, flops, "GFLOP/s"},
                            {"backward", backward, step.samples * sample.backward, flops, "GFLOP/s"},
                            {"optimizer", step.time.optimizer, ranks * step.optimizer_bytes, bytes, "GB/s"},
                            {"exchange", step.time.communication, 2 * ranks * step.sent_bytes, bytes, "GB/s"},
                            {"waiting", step.time.waiting}};
  std::string text = fmt::format(
      "\ntraining step: {} in {:.1f} us, {} samples/s; limits of all threads: multiply-adds{}, "
      "copies in memory\n(which what fits into caches can exceed); exchange: what backward does not hide\n",
      plural(static_cast<Index>(std::round(step.samples)), "sample"), step.seconds * kMicro,
      count_text(step.samples_per_second), of_fp32(report));
  for (const PartRate& part : parts) text += part_text(part, step.seconds);
  return text + fmt::format("  achieved {:.1f} GFLOP/s, {} of the limit of all threads\n", step.flops / kGiga,
                            percent(step.flops, flops));
}

}  // namespace

SampleFlops flops_per_sample(const BenchReport& report) {
  SampleFlops flops;
  for (const OpRate& op : report.ops) {
    flops.forward += static_cast<double>(op.forward_flops);
    flops.backward += static_cast<double>(op.backward_flops);
  }
  const auto rows = static_cast<double>(report.rows);
  return {flops.forward / rows, flops.backward / rows};
}

std::string to_text(const BenchReport& report) {
  return machine_text(report) + ops_text(report) + exchanges_text(report) + algorithms_text(report) +
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
            {"ops", Json::array()},
            {"exchanges", Json::array()},
            {"algorithms", Json::array()},
            {"updates", Json::array()}};
  for (const OpRate& op : report.ops) {
    json["ops"].push_back({{"title", op.title},
                           {"forward_flops", op.forward_flops},
                           {"backward_flops", op.backward_flops},
                           {"forward_seconds", op.forward_seconds},
                           {"backward_seconds", op.backward_seconds}});
  }
  for (const AlgorithmRate& each : report.exchanges)
    json["exchanges"].push_back({{"bytes", each.bytes}, {"seconds", each.seconds}});
  for (const AlgorithmRate& each : report.algorithms)
    json["algorithms"].push_back({{"name", each.name}, {"bytes", each.bytes}, {"seconds", each.seconds}});
  for (const UpdateRate& each : report.updates)
    json["updates"].push_back({{"name", each.name}, {"weights", each.weights}, {"seconds", each.seconds}});
  const StepRate& step = report.step;
  json["step"] = {{"seconds", step.seconds},
                  {"samples", step.samples},
                  {"workers", step.workers},
                  {"replicas", step.replicas},
                  {"threads", step.threads},
                  {"accumulate", step.accumulate},
                  {"optimizer_bytes", step.optimizer_bytes},
                  {"sent_bytes", step.sent_bytes},
                  {"stepped", step.stepped},
                  {"samples_per_second", step.samples_per_second},
                  {"flops", step.flops},
                  {"data", step.time.data},
                  {"forward", step.time.forward},
                  {"backward", step.time.compute - step.time.forward - step.time.optimizer},
                  {"optimizer", step.time.optimizer},
                  {"exchange", step.time.communication},
                  {"waiting", step.time.waiting}};
  return indented(json);
}

}  // namespace lockstep
