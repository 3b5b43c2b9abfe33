#include "worker_stats.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

WorkerStats::WorkerStats(Index workers) : counts_(static_cast<std::size_t>(workers * kColumns)) {}

void WorkerStats::count_computed(std::size_t worker) {
  ++at(worker, kComputed);
}

void WorkerStats::count_step(std::size_t worker, Index samples) {
  ++at(worker, kSteps);
  at(worker, kSamples) += samples;
}

void WorkerStats::count_drop(std::size_t worker, Index samples) {
  ++at(worker, kDropped);
  at(worker, kDroppedSamples) += samples;
}

void WorkerStats::count_staleness(std::size_t worker, Index staleness) {
  ++at(worker, kStaleness + std::min(staleness, kMaxStaleness));
  at(worker, kStalenessSum) += staleness;
}

void WorkerStats::count_ahead(std::size_t worker, Index ahead) {
  at(worker, kAhead) = std::max(at(worker, kAhead), ahead);
}

std::vector<WorkerRecord> WorkerStats::gather(Communicator& comm) const {
  std::vector<Index> all = counts_;
  comm.all_reduce_sum(as_buffer(std::span(all)));
  std::vector<WorkerRecord> records;
  for (auto row = all.begin(); row != all.end(); row += kColumns) {
    const auto histogram = row + kStaleness;
    auto end = row + kColumns;
    while (end != histogram && *(end - 1) == 0) --end;
    records.push_back({.computed = row[kComputed],
                       .steps = row[kSteps],
                       .samples = row[kSamples],
                       .dropped = row[kDropped],
                       .dropped_samples = row[kDroppedSamples],
                       .max_ahead = row[kAhead],
                       .staleness_sum = row[kStalenessSum],
                       .staleness = {histogram, end}});
  }
  return records;
}

double WorkersReport::mean_staleness() const {
  double count = 0;
  double sum = 0;
  for (const WorkerRecord& worker : workers) {
    for (const Index slices : worker.staleness) count += static_cast<double>(slices);
    sum += static_cast<double>(worker.staleness_sum);
  }
  return count > 0 ? sum / count : 0;
}

Index WorkersReport::staleness_percentile(double share) const {
  std::vector<Index> histogram;
  Index count = 0;
  for (const WorkerRecord& worker : workers) {
    histogram.resize(std::max(histogram.size(), worker.staleness.size()));
    for (std::size_t i = 0; i < worker.staleness.size(); ++i) {
      histogram[i] += worker.staleness[i];
      count += worker.staleness[i];
    }
  }
  const auto wanted = static_cast<Index>(std::ceil(share * static_cast<double>(count)));
  Index below = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    below += histogram[i];
    if (below >= wanted) return static_cast<Index>(i);
  }
  return 0;
}

}  // namespace lockstep
