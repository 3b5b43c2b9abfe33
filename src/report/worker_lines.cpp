#include "lockstep/report/worker_lines.h"

#include <fmt/format.h>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

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
