// The last ranks are servers: they own the weights and host no replica. Workers push gradients and pull
// weights (Li et al. 2014, "Scaling distributed machine learning with the parameter server").
#include "asynchronous_servers.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  if (is_asynchronous(context.options)) return make_asynchronous_servers(context);
  return make_sharded_update(context);
}

std::vector<RankCosts> server_costs(const CostModelInput& question) {
  return is_asynchronous(question.options) ? asynchronous_costs(question) : sharded_update_costs(question);
}

}  // namespace

bool is_asynchronous(const DistOptions& options) {
  return count_servers(options) > 0 && (options.mode != ServerMode::kSync || options.backup_workers > 0);
}

StrategyEntry parameter_server_entry() {
  return {.name = "parameter_server",
          .help =
              "the last ranks are servers that own the weights and take the steps; the other ranks push "
              "gradients and pull weights",
          .elsewhere = "ParameterServerStrategy, tf.estimator; ps-lite, MXNet dist_sync and dist_async",
          .choose =
              "workers of uneven speed (async, bounded, backup workers), or to see what asynchronous "
              "steps cost",
          .promises = {.same_bits = true,
                       .identical_replicas = true,
                       .divides_optimizer_state = true,
                       .exact_resume = true,
                       .repeats_recorded_runs = true},
          .has_servers = true,
          .options = {"distribute.servers", "distribute.mode", "distribute.backup_workers"},
          .costs = server_costs,
          .make = make};
}

}  // namespace lockstep
