// Batch norm under data parallelism: what each mode says about whose samples count, for one step, and
// what running moments follow where a short step leaves a replica one sample.
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/layer.h"
#include "support/asynchronous_cases.h"
#include "support/one_step.h"
#include "support/ranks.h"
#include "support/tiny_run.h"
#include "support/torch_references.h"

namespace lockstep::batch_norm_test {
namespace {

using namespace test;

constexpr Index kSamples = 24;

struct Net {
  std::string layers;
  Shape input;
};

const std::vector<Net> kNets{
    {"dense(6) batch_norm relu dense(5) batch_norm dense(3)", {{7}}},
    {"batch_norm dense(4)", {{5}}},
    {"conv2d(4, 3, padding=same, bias=false) batch_norm relu "
     "residual(conv2d(6, 3, stride=2, padding=same) batch_norm tanh conv2d(6, 3, padding=same) batch_norm) "
     "maxpool(2) flatten dense(3)",
     {{6, 6, 2}}},
};

// kSamples samples over 1, 2, 4 or 8 replicas, even and uneven.
const std::vector<std::vector<Index>> kCuts{{24},
                                            {12, 12},
                                            {23, 1},
                                            {6, 6, 6, 6},
                                            {10, 0, 13, 1},
                                            {3, 3, 3, 3, 3, 3, 3, 3},
                                            {0, 5, 1, 0, 7, 7, 4, 0}};

void expect_close(const std::vector<Scalar>& found, const std::vector<Scalar>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 1;
  for (const Scalar value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * largest) << what << " " << i;
}

TEST(BatchNorm, SyncOverManyReplicasIsOneReplicaOnTheWholeBatch) {
  for (const Net& net : kNets) {
    SCOPED_TRACE(net.layers);
    OneStep step{
        .model = {.layers = net.layers, .batch_norm = "sync"}, .input = net.input, .rows = {kSamples}};
    const OneStepResult one = run_one_step_alone(step);
    for (const std::vector<Index>& rows : kCuts) {
      step.rows = rows;
      test::on_ranks([&](Communicator& comm) {
        if (comm.size() > static_cast<int>(rows.size())) return;
        for (const Reduction reduction : {Reduction::kOrdered, Reduction::kNative}) {
          OneStep here = step;
          here.reduction = reduction;
          const OneStepResult many = run_one_step(comm, here);
          expect_close(many.outputs, one.outputs, 1e-6, "output");
          expect_close(many.gradient, one.gradient, 1e-6, "gradient");
          EXPECT_NEAR(many.loss, one.loss, 1e-6 * one.loss);
          for (const auto& state : many.states)
            expect_close(state, one.states.front(), 1e-6, "running moment");
        }
      });
    }
  }
}

// Moments of the raw samples of some replicas, in double.
struct Expected {
  std::vector<double> mean;
  std::vector<double> variance;  // unbiased
  Index count = 0;
};

Expected moments(const OneStep& step, Range replicas) {
  const Index before = std::accumulate(step.rows.begin(), step.rows.begin() + replicas.begin, Index{0});
  const Index after = std::accumulate(step.rows.begin(), step.rows.begin() + replicas.end, Index{0});
  const auto width = static_cast<std::size_t>(step.input.size());
  Expected found{std::vector<double>(width), std::vector<double>(width), after - before};
  const auto n = static_cast<double>(found.count);
  for (Index i = before; i < after; ++i) {
    const std::vector<Scalar> x = test::sample(step.input, i);
    for (std::size_t c = 0; c < width; ++c) found.mean[c] += static_cast<double>(x[c]) / n;
  }
  for (Index i = before; i < after; ++i) {
    const std::vector<Scalar> x = test::sample(step.input, i);
    for (std::size_t c = 0; c < width; ++c)
      found.variance[c] += std::pow(static_cast<double>(x[c]) - found.mean[c], 2) / std::max(n - 1, 1.0);
  }
  return found;
}

TEST(BatchNorm, RunningMomentsAreThoseOfTheReplicasThatTheModeNames) {
  const Index width = 5;
  for (const std::string mode : {"local", "averaged", "sync", "group(2)", "group(3)"}) {
    for (const std::vector<Index>& rows : kCuts) {
      SCOPED_TRACE(mode + " over " + std::to_string(rows.size()));
      const OneStep step{
          .model = {.layers = "batch_norm dense(2)", .batch_norm = mode}, .input = {{width}}, .rows = rows};
      const auto replicas = std::ssize(rows);
      const BatchNormMode parsed = parse_batch_norm_mode(mode);
      test::on_ranks([&](Communicator& comm) {
        if (comm.size() > replicas) return;
        const OneStepResult result = run_one_step(comm, step);
        for (Index replica = 0; replica < replicas; ++replica) {
          const Expected expected = moments(step, parsed.moments_with(replica, replicas));
          const std::vector<Scalar>& state = at(result.states, replica);
          const std::size_t variance = state.size() / 2;  // two tensors of equal, padded length
          for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) {
            const bool defined = expected.count > 1;  // a single value has no variance
            EXPECT_NEAR(state[c], defined ? 0.1 * expected.mean[c] : 0.0, 1e-6) << "replica " << replica;
            EXPECT_NEAR(state[variance + c], defined ? 0.9 + 0.1 * expected.variance[c] : 1.0, 2e-6)
                << "replica " << replica;
          }
        }
      });
    }
  }
}

TEST(BatchNorm, AGroupIsAModelOfItsOwn) {
  OneStep all{.model = {.layers = kNets[0].layers, .batch_norm = "group(2)"},
              .input = kNets[0].input,
              .rows = {6, 4, 5, 9}};
  const OneStepResult grouped = run_one_step_alone(all);
  // The first two replicas with sync, without the others.
  OneStep first = all;
  first.model.batch_norm = "sync";
  first.rows = {6, 4};
  const OneStepResult synced = run_one_step_alone(first);
  const std::vector<Scalar> outputs(grouped.outputs.begin(), grouped.outputs.begin() + 10 * 3);
  expect_close(outputs, synced.outputs, 1e-6, "output");
  EXPECT_EQ(grouped.states[0], grouped.states[1]);
  EXPECT_EQ(grouped.states[2], grouped.states[3]);
  EXPECT_NE(grouped.states[0], grouped.states[2]);
  expect_close(grouped.states[0], synced.states[0], 1e-6, "running moment");
}

TEST(BatchNorm, ALayerCanHaveAModeOfItsOwn) {
  OneStep step{.model = {.layers = "dense(6) batch_norm(mode=sync) relu batch_norm(mode=group(2)) dense(3)",
                         .batch_norm = "local"},
               .input = {{7}},
               .rows = {6, 4, 5, 9}};
  const OneStepResult result = run_one_step_alone(step);
  const std::size_t layer = result.states[0].size() / 2;
  const auto first = [&](const std::vector<Scalar>& state) {
    return std::vector(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(layer));
  };
  const auto second = [&](const std::vector<Scalar>& state) {
    return std::vector(state.begin() + static_cast<std::ptrdiff_t>(layer), state.end());
  };
  EXPECT_EQ(first(result.states[0]), first(result.states[3]));
  EXPECT_EQ(second(result.states[0]), second(result.states[1]));
  EXPECT_NE(second(result.states[0]), second(result.states[3]));
}

// PyTorch's figures are of BatchNorm on the whole batch, which is what its SyncBatchNorm computes over
// processes.
TEST(BatchNorm, SyncOverReplicasOfOneSampleIsPyTorchOnTheWholeBatch) {
  int cases = 0;
  for (const nlohmann::json& torch : test::torch_references("layers", "torch_layers.json")) {
    const std::string layers = torch.at("layers");
    if (layers.find("batch_norm") == std::string::npos || torch.contains("lengths")) continue;
    SCOPED_TRACE(layers);
    ++cases;
    const OneStep step{.model = {.layers = layers, .batch_norm = "sync"},
                       .input = {torch.at("input").get<std::vector<Index>>()},
                       .rows = std::vector<Index>(torch.at("rows").get<std::size_t>(), 1),
                       .samples = torch.at("batches").back(),
                       .output_gradient = torch.at("output_gradient"),
                       .set_weights = [&](const Layout& layout, std::span<Scalar> weights) {
                         for (const ParamInfo& param : layout.params) {
                           std::ranges::copy(torch.at("weights").at(param.name).get<std::vector<Scalar>>(),
                                             part(weights, param.range).begin());
                         }
                       }};
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() > static_cast<int>(step.rows.size())) return;
      const OneStepResult result = run_one_step(comm, step);
      test::expect_close(result.outputs, torch.at("outputs"), 1e-6);
      for (const auto& [name, gradient] : result.gradient_of) {
        SCOPED_TRACE(name);
        test::expect_close(gradient, torch.at("gradient").at(name), 2e-6);
      }
    });
  }
  EXPECT_EQ(cases, 4);
}

TEST(BatchNorm, SameBitsOnAnyNumberOfRanksAndThreads) {
  for (const Net& net : kNets) {
    for (const std::string mode : {"local", "averaged", "sync", "group(3)"}) {
      for (const Index accumulate : {1, 3}) {
        SCOPED_TRACE(net.layers + " " + mode);
        const OneStep step{.model = {.layers = net.layers, .batch_norm = mode},
                           .input = net.input,
                           .rows = {0, 5, 1, 0, 7, 7, 4, 0},
                           .accumulate = accumulate};
        const OneStepResult alone = run_one_step_alone(step);
        test::on_ranks([&](Communicator& comm) {
          for (const Index threads : {1, 2}) {
            if (threads * comm.size() > 8) continue;
            OneStep here = step;
            here.threads = threads;
            const OneStepResult result = run_one_step(comm, here);
            EXPECT_EQ(result.outputs, alone.outputs);
            EXPECT_EQ(result.gradient, alone.gradient);
            EXPECT_EQ(result.states, alone.states);
          }
        });
      }
    }
  }
}

TEST(BatchNormMode, TextsRoundTripAndScopesArePartitions) {
  for (const std::string text : {"local", "averaged", "sync", "group(1)", "group(3)", "group(8)"}) {
    const BatchNormMode mode = parse_batch_norm_mode(text);
    EXPECT_EQ(to_string(mode), text);
    for (Index replica = 0; replica < 8; ++replica) {
      const Range with = mode.normalised_with(replica, 8);
      EXPECT_TRUE(with.contains(replica));
      EXPECT_TRUE(mode.moments_with(replica, 8).contains(with));
      for (Index other = with.begin; other < with.end; ++other)
        EXPECT_EQ(mode.normalised_with(other, 8), with);
    }
  }
  for (const std::string text : {"", "global", "group", "group()", "group(0)", "group(-1)", "group(2"})
    EXPECT_THROW(parse_batch_norm_mode(text), std::exception) << text;
}

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
  Config config =
      test::tiny_config("model.layers=batch_norm dense(3); train.replicas=1; train.global_batch=100");
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
}  // namespace lockstep::batch_norm_test
