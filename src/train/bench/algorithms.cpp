#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/exchange/exchange_trial.h"
#include "lockstep/train/bench/bench.h"
#include "timing.h"

namespace lockstep {

std::vector<AlgorithmRate> measure_algorithms(Communicator& comm, const DistOptions& options,
                                              const Plan& plan, Index ranks_per_node, Index bytes) {
  constexpr double kBudgetSeconds = 0.03;
  const AlgorithmContext context{
      .comm = comm, .plan = plan, .reduction = options.reduction, .ranks_per_node = ranks_per_node};
  DistOptions any = options;
  any.strategy = "allreduce";
  any.algorithm = kAutoAlgorithm;
  std::vector<AlgorithmRate> rates;
  for (const AlgorithmEntry* entry : possible_algorithms(any, look_at_nodes(comm, ranks_per_node))) {
    ExchangeTrial trial(context, *entry, bytes / Index{sizeof(Scalar)});
    rates.push_back({.name = entry->name,
                     .bytes = bytes,
                     .seconds = median_seconds(
                         comm, [&] { trial.run(); }, kBudgetSeconds)});
  }
  return rates;
}

}  // namespace lockstep
