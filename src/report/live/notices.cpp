#include "lockstep/report/live/notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// A class whose share differs by more than this, and by more than chance explains, is worth a word.
constexpr double kMuch = 0.1;
constexpr double kDeviations = 5;

double samples_of(const ClassCounts& counts) {
  double samples = 0;
  for (const auto& [label, count] : counts) samples += count;
  return samples;
}

std::string describe_staleness(const WorkersReport& report) {
  Index dropped = 0;
  Index computed = 0;
  for (const WorkerRecord& worker : report.workers) {
    dropped += worker.dropped;
    computed += worker.computed;
  }
  if (dropped > 0) {
    return fmt::format("dropped: {} of {} gradients", with_commas(dropped), with_commas(computed));
  }
  return fmt::format("staleness: mean {:.2f}, 95th percentile {}", report.mean_staleness(),
                     report.staleness_percentile(0.95));
}

}  // namespace

std::string few_cores_warning(std::span<const Index> cores, Index threads) {
  const auto fewest = std::ranges::min_element(cores);
  if (*fewest >= threads) return "";
  return fmt::format(
      "rank {} runs {} threads on {} core{}; use fewer threads or ranks, or bind more cores to each rank: "
      "mpirun -np {} --map-by slot:PE={} --bind-to core (Open MPI), mpiexec -n {} -bind-to core:{} (MPICH), "
      "or srun --cpus-per-task={}",
      fewest - cores.begin(), threads, *fewest, *fewest == 1 ? "" : "s", cores.size(), threads, cores.size(),
      threads, threads);
}

std::string describe_uneven_shards(std::span<const ClassCounts> shards) {
  ClassCounts whole;
  for (const ClassCounts& shard : shards) {
    for (const auto& [label, count] : shard) whole[label] += count;
  }
  const double samples = samples_of(whole);
  for (std::size_t replica = 0; replica < shards.size(); ++replica) {
    const double size = samples_of(shards[replica]);
    if (size == 0) continue;
    for (const auto& [label, count] : whole) {
      const auto found = shards[replica].find(label);
      const double share = found == shards[replica].end() ? 0 : found->second / size;
      const double expected = count / samples;
      const double chance = kDeviations * std::sqrt(expected * (1 - expected) / size);
      if (std::abs(share - expected) <= std::max(kMuch, chance)) continue;
      return fmt::format(
          "WARNING: the shards are not alike: class {} makes {:.1f} % of the shard of replica {}, but {:.1f} "
          "% of all samples. Training on such shards is biased: choose data.shard_order = shuffled with "
          "data.memory = load, or data.reshuffle = global, or shuffle the file\n",
          label, 100 * share, replica, 100 * expected);
    }
  }
  return "";
}

std::vector<std::string> worker_lines(const WorkersReport& report, Index samples) {
  std::vector<std::string> lines{describe_staleness(report)};
  const double fair = static_cast<double>(samples) / static_cast<double>(report.workers.size());
  for (std::size_t rank = 0; rank < report.workers.size(); ++rank) {
    const WorkerRecord& worker = report.workers[rank];
    std::string dropped;
    if (worker.dropped > 0) {
      dropped = fmt::format(", {} dropped with {} samples", with_commas(worker.dropped),
                            with_commas(worker.dropped_samples));
    }
    lines.push_back(fmt::format("worker {}: {} gradients with {} samples{}: {:.2f} times an even share", rank,
                                with_commas(worker.steps), with_commas(worker.samples), dropped,
                                static_cast<double>(worker.samples) / fair));
  }
  return lines;
}

}  // namespace lockstep
