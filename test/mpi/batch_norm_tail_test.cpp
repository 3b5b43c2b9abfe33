// Batch norm where a short step leaves a replica one sample: running moments follow what has a variance.
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <utility>

#include "support/asynchronous_cases.h"
#include "support/one_step.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::batch_norm_tail_test {
namespace {

using test::OneStep;
using test::OneStepResult;
using test::run_one_step;
using test::set_keys;

// The running moments of the first and of the last batch norm of a model with two, of a replica.
using Halves = std::array<std::vector<Scalar>, 2>;

Halves halves(const std::vector<Scalar>& state) {
  const auto middle = state.begin() + static_cast<std::ptrdiff_t>(state.size() / 2);
  return {std::vector(state.begin(), middle), std::vector(middle, state.end())};
}

// A replica with one sample makes a constant of it: later layers see no value of the data in it.
TEST(BatchNormTail, RunningMomentsFollowNoConstantsOfSingleValues) {
  const auto run = [](const std::string& first, const std::string& second, std::vector<Index> rows) {
    const OneStep step{.model = {.layers = "dense(6) batch_norm(mode=" + first +
                                           ") relu dense(6) batch_norm(mode=" + second + ") dense(3)"},
                       .input = {{7}},
                       .rows = std::move(rows)};
    OneStepResult found;
    std::mutex mutex;  // ranks may be threads
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() > static_cast<int>(step.rows.size())) return;
      OneStepResult result = run_one_step(comm, step);
      const std::lock_guard lock(mutex);
      if (found.states.empty())
        found = std::move(result);
      else
        EXPECT_EQ(result.states, found.states) << comm.size() << " ranks";
    });
    return found;
  };
  const auto state_of = [](const OneStepResult& result, std::size_t replica) {
    return halves(result.states[replica]);
  };
  const Halves untouched = state_of(run("local", "local", {1, 1, 1, 1}), 0);
  EXPECT_EQ(untouched[0], untouched[1]) << "as they start";

  const OneStepResult alone = run("averaged", "averaged", {1, 1, 1, 1});
  EXPECT_NE(state_of(alone, 0)[0], untouched[0]) << "four values together have a variance";
  EXPECT_EQ(state_of(alone, 0)[1], untouched[1]);

  const OneStepResult with = run("averaged", "averaged", {10, 0, 13, 1});
  const OneStepResult without = run("averaged", "averaged", {10, 0, 13, 0});
  EXPECT_NE(state_of(with, 0)[0], state_of(without, 0)[0]);
  EXPECT_EQ(state_of(with, 0)[1], state_of(without, 0)[1]);

  for (const std::string mode : {"sync", "group(2)"}) {
    const OneStepResult mixed = run("local", mode, {3, 1, 4, 2});
    EXPECT_EQ(state_of(mixed, 0)[1], untouched[1]) << mode;
    EXPECT_EQ(state_of(mixed, 2)[1] == untouched[1], mode == "sync") << mode;
  }
}

// Batches of 100, the last of one sample: the moments of the input are those of the run that drops it.
TEST(BatchNormTail, ARunLeavesOutATailOfOne) {
  Config config = test::tiny_config();
  set_keys(config, "model.layers=batch_norm dense(3); train.replicas=1; train.global_batch=100");
  for (const std::string strategy : {"allreduce", "local_sgd"}) {
    for (const Index precise : {0, 2}) {
      config.distribute.strategy = strategy;
      config.eval.precise_bn = precise;
      config.train.tail = Tail::kKeep;
      const test::TinyResult kept = test::train_tiny_alone(config);
      EXPECT_EQ(kept.training.single_value_steps, 3);
      config.train.tail = Tail::kDrop;
      const test::TinyResult dropped = test::train_tiny_alone(config);
      EXPECT_EQ(dropped.training.single_value_steps, 0);
      // Over all batches together the one value counts as any other.
      EXPECT_EQ(kept.state == dropped.state, precise == 0) << strategy << precise;
    }
  }
}

// A worker and a server: each gradient is a step.
TEST(BatchNormTail, AnAsynchronousServerLeavesItOutToo) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() != 2) return;
    Config config = test::config_for(comm, 1, ServerMode::kAsync);
    set_keys(config, "model.layers=batch_norm dense(3); train.global_batch=100; train.tail=keep");
    const test::TinyResult kept = test::train_tiny(comm, config);
    config.train.tail = Tail::kDrop;
    const test::TinyResult dropped = test::train_tiny(comm, config);
    EXPECT_EQ(kept.training.single_value_steps, 3);
    EXPECT_EQ(dropped.training.single_value_steps, 0);
    EXPECT_EQ(kept.state, dropped.state);
  });
}

}  // namespace
}  // namespace lockstep::batch_norm_tail_test
