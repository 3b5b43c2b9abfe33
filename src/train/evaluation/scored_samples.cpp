#include "lockstep/train/evaluation/scored_samples.h"

#include <algorithm>
#include <numeric>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr int kSamples = 0;  // channel

constexpr std::size_t kNumbers = sizeof(ScoredSample) / sizeof(Scalar);
static_assert(kNumbers == 3);

}  // namespace

ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine) {
  const auto own = std::ssize(mine);
  const std::vector<Index> counts = gather_numbers(comm, own);
  if (comm.rank() > 0) {
    if (own == 0) return {};
    const Send send{.peer = 0, .buffer = as_buffer(std::as_bytes(mine))};
    comm.start_exchange(kSamples, {&send, 1}, {})->wait();
    return {};
  }
  ScoredSamples all(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})));
  std::ranges::copy(mine, all.begin());
  std::span<ScoredSample> rest = std::span(all).subspan(mine.size());
  for (int rank = 1; rank < comm.size(); ++rank) {
    const auto count = static_cast<std::size_t>(at(counts, rank));
    if (count == 0) continue;
    const Receive receive{.peer = rank, .buffer = as_buffer(std::as_writable_bytes(rest.first(count)))};
    comm.start_exchange(kSamples, {}, {&receive, 1})->wait();
    rest = rest.subspan(count);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace lockstep
