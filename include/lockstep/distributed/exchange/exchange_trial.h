// An exchange of made-up partial sums that can be repeated, to see how long it takes.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

class ExchangeTrial {
 public:
  /// *Collective.* A trial with `count` numbers in one bucket, between the ranks and replicas of the
  /// context's plan.
  ExchangeTrial(const AlgorithmContext& context, const AlgorithmEntry& entry, Index count);

  /// *Collective.* One exchange.
  void run();

 private:
  Plan plan_;
  std::vector<Index> samples_;
  std::unique_ptr<Reducer> reducer_;
  PartialGrads partial_;
  std::deque<AlignedBuffer<Scalar>> own_;
};

}  // namespace lockstep
