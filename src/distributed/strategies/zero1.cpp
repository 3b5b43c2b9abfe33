// The workers own the weights among themselves (Rajbhandari et al. 2020, "ZeRO", stage 1).
#include "lockstep/distributed/strategies/strategy.h"
#include "sharded_update.h"

namespace lockstep {

StrategyEntry zero1_entry() {
  return {.name = "zero1",
          .help =
              "each worker keeps the optimizer state of its share of the weights, takes the step there and "
              "gives the new weights to all",
          .elsewhere = "ZeRO stage 1 (DeepSpeed); PyTorch ZeroRedundancyOptimizer",
          .choose =
              "when the optimizer state of a large model (twice the weights with adam) does not fit on "
              "every rank",
          .promises = {.same_bits = true,
                       .identical_replicas = true,
                       .divides_optimizer_state = true,
                       .divides_layers = true,
                       .exact_resume = true},
          .options = {"distribute.progress_thread"},
          .costs = sharded_update_costs,
          .make = make_sharded_update};
}

}  // namespace lockstep
