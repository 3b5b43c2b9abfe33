// A short measurement at the start of a run: which algorithm is fastest for messages of which size, here and
// now.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

/// An exchange of made-up partial sums that can be repeated, to see how long it takes.
class ExchangeTrial {
 public:
  /// *Collective.* With `count` numbers in one bucket, between the ranks and replicas of the request's plan.
  ExchangeTrial(const ExchangeRequest& request, const AlgorithmEntry& entry, Index count);

  /// *Collective.* One exchange.
  void run();

 private:
  Plan plan_;
  std::vector<Index> samples_;
  std::unique_ptr<Reducer> reducer_;
  PartialGrads partial_;
  std::deque<AlignedBuffer<Scalar>> own_;
};

/// The size that stands for messages of `count` numbers in a calibration: a power of two of at most 4 MiB.
Index calibrated_size(Index count);

/// *Collective.* For each bucket the candidate with the shortest median time for its size, as rank 0 measures
/// it; the same on all ranks. Sizes that time does not suffice for get what the size before them got.
AlgorithmChoice calibrate(const ExchangeRequest& request, std::span<const AlgorithmEntry* const> candidates);

}  // namespace lockstep
