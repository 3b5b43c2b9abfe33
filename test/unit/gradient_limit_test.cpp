// Means that are no good numbers although no replica's part is bad: every strategy leaves the step out.
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/thread_ranks.h"

namespace lockstep::gradient_limit_test {

constexpr double kLr = 0.5 / double{kMaxGradient};

Layout small_layout() {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{40}}, .range = {}});
  return layout;
}

// A replica for each rank but servers, with one sample for each of `shares`: of the largest sum that is good.
struct Step {
  const StrategyEntry& entry;
  std::vector<double> shares;
  double weight = 0;
  StepOutcome take(Communicator& comm, const Plan& plan, SynchronousStrategy& strategy) const;
  // Whether the step was taken; then the weights have moved by the mean times kLr.
  bool applied() const;
};

// As workers do: whoever makes a gradient looks at it where the strategy asks for that.
StepOutcome Step::take(Communicator& comm, const Plan& plan, SynchronousStrategy& strategy) const {
  const auto replica = static_cast<std::size_t>(comm.rank());
  const std::vector<Index> samples(shares.size(), 1);
  strategy.begin_step(samples, weight);
  PartialGrads partial;
  std::vector<Scalar> own(static_cast<std::size_t>(plan.gradient_size));
  if (replica < shares.size()) {
    std::span<Scalar> arena = strategy.gradient_arena();
    if (arena.empty()) arena = own;
    const Scalar part = static_cast<Scalar>(shares[replica] * weight * double{kMaxGradient});
    std::ranges::fill(arena, part);
    at(arena, plan.loss_offset) = 1;
    FactoredGradients* const factored = strategy.factored_gradients();
    if (factored != nullptr && part > factored->max_gradient()) factored->bad_gradient();
    partial = {.subtrees = {{comm.rank(), comm.rank() + 1}}, .sums = {arena}};
  }
  for (const Bucket& bucket : plan.buckets) strategy.bucket_ready(bucket, partial);
  strategy.finish_exchange();
  return strategy.update({.step = 1, .weight = weight, .lr = kLr});
}

bool Step::applied() const {
  const Layout layout = small_layout();
  const auto optimizer = find_entry(optimizer_catalog(), "optimizer", "sgd").make({});
  DistOptions options{.strategy = entry.name, .servers = entry.has_servers ? 1 : 0};
  const Index world = std::ssize(shares) + options.servers;
  const Plan plan = make_plan(options, layout,
                              {.world = world, .servers = options.servers, .replicas = std::ssize(shares)});
  bool applied = false;
  run_thread_ranks(static_cast<int>(world), [&](Communicator& comm) {
    ThreadTeam team(1);
    const auto made = entry.make({.comm = comm,
                                  .options = options,
                                  .plan = plan,
                                  .layout = layout,
                                  .optimizer = *optimizer,
                                  .rules = {},
                                  .team = team});
    auto& strategy = *made->synchronous();
    strategy.start();
    const StepOutcome outcome = take(comm, plan, strategy);
    const double mean = outcome.applied ? std::accumulate(shares.begin(), shares.end(), 0.0) : 0;
    for (const Scalar w : part(strategy.gather_model(), layout.params[0].range))
      EXPECT_NEAR(w, -mean / 2, 1e-6);
    if (comm.rank() == 0) applied = outcome.applied;
  });
  return applied;
}

TEST(GradientLimit, IsThatOfTheMeanHoweverManyReplicasItComesFrom) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (entry.weights_per_replica) continue;  // there each steps by its own
    for (const double weight : {0.25, 1.0, 8.0}) {
      SCOPED_TRACE(testing::Message() << entry.name << ", weight " << weight);
      EXPECT_TRUE((Step{entry, {0.49, 0.49}, weight}.applied()));
      EXPECT_FALSE((Step{entry, {0.6, 0.6}, weight}.applied()));
      EXPECT_TRUE((Step{entry, {0.33, 0.33, 0.33}, weight}.applied()));
      EXPECT_FALSE((Step{entry, {0.4, 0.4, 0.4}, weight}.applied()));
      EXPECT_FALSE((Step{entry, {0, 1.5}, weight}.applied()));
    }
  }
}

}  // namespace lockstep::gradient_limit_test
