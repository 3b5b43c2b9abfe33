// The last ranks are servers: they own the weights and host no replica. Workers push gradients and pull
// weights (Li et al. 2014, "Scaling distributed machine learning with the parameter server").
#include "entries.h"
#include "owner_step.h"

namespace lockstep {

StrategyEntry parameter_server_entry() {
  return {.name = "parameter_server",
          .help =
              "the last ranks are servers that own the weights and take the steps; the other ranks push "
              "gradients and pull weights",
          .elsewhere = "ParameterServerStrategy, tf.estimator; ps-lite, MXNet dist_sync and dist_async",
          .choose =
              "workers of uneven speed (async, bounded, backup workers), or to see what asynchronous "
              "steps cost",
          .promises = {.same_bits = true, .identical_replicas = true, .divides_optimizer_state = true},
          .has_servers = true,
          .options = {"distribute.servers", "distribute.mode"},
          .make = make_owner_step};
}

}  // namespace lockstep
