// Exchanges of made-up gradients, step after step, with what their sums should be.
#pragma once

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "support/common.h"

namespace lockstep::test {

struct ExchangeCase {
  std::string name;
  DistOptions options;
  std::vector<Index> borders;  ///< of the buckets, ascending, from 0 to the size of the arena
  Index replicas_per_rank = 1;
  Index ranks_per_node = 0;
};

/// How make_reducer() is called.
using MakeExchange = std::unique_ptr<Reducer> (*)(const ExchangeRequest&);

/// A rank's side of it.
class Exchanging {
 public:
  Exchanging(Communicator& comm, const ExchangeCase& one, MakeExchange make = make_reducer);

  Reducer& reducer() { return *reducer_; }
  /// *Collective.* The sum; ranks come to their buckets at different moments. In every third step half of the
  /// replicas have nothing, and some ranks with them.
  std::vector<Scalar> step(Index step);
  /// The same in double.
  std::vector<double> expected(Index step) const;

 private:
  PartialGrads fill(const std::vector<Index>& samples, Index step);
  void expect_sum(std::size_t bucket, const std::vector<double>& sums);

  Communicator& comm_;
  bool ordered_;
  Plan plan_;
  std::unique_ptr<Reducer> reducer_;
  std::deque<AlignedBuffer<Scalar>> own_;
  std::vector<std::span<Scalar>> arenas_;
};

}  // namespace lockstep::test
