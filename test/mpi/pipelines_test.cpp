// Whatever the arrangement of the ranks into groups and stages, the numbers are those of one rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/agree.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/math/kernels.h"
#include "support/ranks.h"
#include "support/same_run.h"
#include "support/saving_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test::pipelines_test {
namespace {

constexpr const char* kResidual =
    "dense(9) relu residual(dense(9) tanh dropout(0.2) dense(9)) batch_norm relu dense(7) tanh dense(3)";

Config staged(Index stages) {
  Config config = tiny_config();
  config.distribute.stages = stages;
  return config;
}

void skip_a_bad_step(Config& c) {
  c.train.on_nan = OnNan::kSkip;
  c.train.skip_limit = 5;
  c.debug.nan_replica = 5;
  c.debug.nan_step = 3;
  c.debug.nan_steps = 1;
}

PipelineSchedule interleaved(Index chunks) {
  return {.order = PipelineSchedule::Order::kInterleaved, .chunks = chunks};
}

const std::vector<PipelineSchedule> kSchedules{PipelineSchedule::kOneForwardOneBackward,
                                               PipelineSchedule::kGpipe};
constexpr const char* kDeep =
    "dense(9) relu dense(9) tanh dense(8) relu dense(7) batch_norm tanh dense(6) relu dense(3)";

// Each arrangement of the ranks into groups of 2 to `most` stages.
void expect_bits_of_one_rank(const std::string& what, const std::function<void(Config&)>& change,
                             const std::vector<PipelineSchedule>& schedules = kSchedules, Index most = 3) {
  SCOPED_TRACE(what);
  Config alone = tiny_config();
  change(alone);
  const TinyResult expected = train_tiny_alone(alone);
  on_ranks({2, 3, 4, 6}, [&](Communicator& comm) {
    for (Index stages = 2; stages <= comm.size(); ++stages) {
      if (comm.size() % stages != 0 || stages > most) continue;
      for (const PipelineSchedule& schedule : schedules) {
        SCOPED_TRACE(fmt::format("{}, {} stages on {} ranks", to_string(schedule), stages, comm.size()));
        Config config = staged(stages);
        change(config);
        config.distribute.schedule = schedule;
        expect_same_bits(train_tiny(comm, config), expected, comm);
      }
    }
  });
}

// `expect` takes a name and a change of the config.
template <class Expect>
void expect_for_strategies(const Expect& expect) {
  expect("momentum", [](Config&) {});
  expect("adam, clipped, zero1", [](Config& c) {
    c.optimizer.optimizer = "adam";
    c.optimizer.clip_norm = 0.3;
    c.distribute.strategy = "zero1";
  });
  expect("central_storage", [](Config& c) { c.distribute.strategy = "central_storage"; });
}

TEST(Pipelines, HaveTheBitsOfOneRank) {
  expect_for_strategies([](const std::string& what, const std::function<void(Config&)>& change) {
    expect_bits_of_one_rank(what, change);
  });
  expect_bits_of_one_rank("whole tensors", [](Config& c) {
    c.optimizer.optimizer = "adafactor";
    c.distribute.strategy = "zero1";
  });
  expect_bits_of_one_rank("the output's matrix", [](Config& c) { c.optimizer.optimizer = "muon"; });
}

// Groups of ranks that are no neighbours: the workers of a stage are.
TEST(Pipelines, MayBeSpread) {
  const auto spread = [](Config& c) {
    c.distribute.placement = StagePlacement::kSpread;
    c.optimizer.optimizer = "adam";
    c.optimizer.clip_norm = 0.3;
  };
  expect_bits_of_one_rank("spread", spread, {PipelineSchedule::kOneForwardOneBackward});
  expect_bits_of_one_rank(
      "spread, zero1",
      [&](Config& c) {
        spread(c);
        c.model.layers = kDeep;
        c.distribute.strategy = "zero1";
      },
      {interleaved(2)}, 2);
}

TEST(Pipelines, PassThroughBlocksAndRandomLayers) {
  for (const std::string mode : {"local", "averaged"}) {
    expect_bits_of_one_rank("residual, " + mode, [&](Config& c) {
      c.model.layers = kResidual;
      c.model.batch_norm = mode;
    });
  }
}

// Replicas of all groups meet at a layer, wherever the model is cut: before it, behind it, or elsewhere, so
// that only one of the stages has such a layer.
TEST(Pipelines, NormaliseOverReplicas) {
  const auto expect = [](const std::string& what, const std::function<void(Config&)>& change, Index most) {
    const std::vector<PipelineSchedule> all_forward_first{PipelineSchedule::kGpipe};
    expect_bits_of_one_rank(what, change, all_forward_first, most);
  };
  for (const std::string mode : {"sync", "group(2)"}) {
    for (const std::string cut : {"1", "2", "3"}) {
      expect(
          mode + ", cut at " + cut,
          [&](Config& c) {
            c.model.layers = "dense(9) batch_norm relu dense(7) tanh dense(3)";
            c.model.batch_norm = mode;
            c.distribute.cut = {cut};
          },
          2);
    }
    expect(
        "residual, accumulate, " + mode,
        [&](Config& c) {
          c.model.layers = kResidual;
          c.model.batch_norm = mode;
          c.train.accumulate = 2;
          c.train.global_batch = 40;
          c.eval.precise_bn = 2;
        },
        3);
  }
  // In the last batch of an epoch only some replicas have a sample.
  expect(
      "uneven, a bad step",
      [](Config& c) {
        c.model.layers = kResidual;
        c.model.batch_norm = "sync";
        c.data.synthetic.rows = 43;
        c.train.replicas = 7;
        skip_a_bad_step(c);
      },
      2);
}

// Each rank has two chunks of the model, or three of it on two ranks.
TEST(Pipelines, InterleaveChunks) {
  const auto expect = [](const std::string& what, const std::function<void(Config&)>& change) {
    const auto deep = [&](Config& c) {
      c.model.layers = kDeep;
      change(c);
    };
    expect_bits_of_one_rank(what, deep, {interleaved(2)});
    expect_bits_of_one_rank(what, deep, {interleaved(3)}, 2);
  };
  expect_for_strategies(expect);
  expect("whole tensors", [](Config& c) {
    c.optimizer.optimizer = "muon";
    c.distribute.strategy = "zero1";
  });
  expect("residual, accumulate", [](Config& c) {
    c.model.layers = kResidual;
    c.model.batch_norm = "averaged";
    c.train.accumulate = 2;
    c.train.global_batch = 40;
    c.train.ema = 0.9;
    c.eval.precise_bn = 2;
  });
  // In the last batch of an epoch 5 of 6 replicas have a sample: a schedule of 5 would need more memory.
  expect("one less", [](Config& c) {
    c.model.layers = "dense(9) relu dense(9) tanh dense(8) relu dense(7) tanh dense(6) relu dense(3)";
    c.data.synthetic.rows = 41;
    c.train.global_batch = 18;
    c.train.replicas = 6;
  });
  // In the last batch of an epoch only some replicas have a sample, and fewer than there are stages.
  expect("uneven, a bad step", [](Config& c) {
    c.data.synthetic.rows = 42;
    c.train.replicas = 7;
    skip_a_bad_step(c);
  });
}

TEST(Pipelines, TakePartsOfReplicasAsMicroBatches) {
  expect_bits_of_one_rank("accumulate", [](Config& c) {
    c.model.layers = kResidual;
    c.train.accumulate = 2;
    c.train.global_batch = 40;
    c.train.ema = 0.9;
  });
}

// In the last batch of an epoch only some replicas have a sample.
TEST(Pipelines, LeaveOutReplicasWithoutSamples) {
  expect_bits_of_one_rank("uneven", [](Config& c) {
    c.data.synthetic.rows = 43;
    c.train.replicas = 7;
  });
}

TEST(Pipelines, WeighSamples) {
  expect_bits_of_one_rank("class weights", [](Config& c) {
    c.train.class_weights = {"0: 1", "1: 5", "2: 0.5"};
    c.eval.class_weights = true;
  });
  // The last stage alone has them.
  for (const Index prefetch : {0, 3}) {
    expect_bits_of_one_rank("weights of records", [&](Config& c) {
      c.data.table.weight = "some";
      c.data.prefetch = prefetch;
    });
  }
}

// Stages that read no records know which samples there were.
TEST(Pipelines, CountTheSamplesOfAnEpochInEachStage) {
  for (const Index prefetch : {0, 3}) {
    expect_bits_of_one_rank("audit", [&](Config& c) {
      c.data.audit = true;
      c.data.prefetch = prefetch;
    });
  }
}

// From checkpoints of one rank and of several, with the model divided and not, also where groups are spread.
void expect_resumed_bits(const std::string& what, const std::function<void(Config&)>& change) {
  SCOPED_TRACE(what);
  const auto prepare = [&](Config& config) {
    config.distribute.bucket_kib = 0;
    change(config);
  };
  const TemporaryDirectory alone;
  Config single = saving_config(alone.path().string(), "4 steps");
  prepare(single);
  const TinyResult expected = train_tiny_alone(single);
  on_ranks({4, 6}, [&](Communicator& comm) {
    if (comm.size() % 2 != 0) return;  // under mpiexec
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "4 steps");
    prepare(config);
    config.distribute.stages = 2;
    if (comm.size() == 6) config.distribute.placement = StagePlacement::kSpread;
    const TinyResult whole = train_tiny(comm, config);
    EXPECT_EQ(whole.save_failure, "");
    config.distribute.placement = StagePlacement::kNeighbours;
    config.run.resume = step_in(directory.path(), 8);
    config.checkpoint.dir = "";
    const TinyResult resumed = train_tiny(comm, config);
    config.distribute.stages = 1;
    const TinyResult undivided = train_tiny(comm, config);
    config.distribute.stages = 2;
    if (comm.size() == 4) config.distribute.schedule = PipelineSchedule::kOneForwardOneBackward;
    config.run.resume = broadcast_text(comm, step_in(alone.path().string(), 8));
    const TinyResult divided = train_tiny(comm, config);
    if (comm.rank() != 0) return;
    for (const TinyResult* result : {&whole, &resumed, &undivided, &divided}) {
      EXPECT_TRUE(result->weights == expected.weights);
      EXPECT_TRUE(result->state == expected.state);
    }
  });
}

// The small stage has two tensors of a block each, so that one of three workers owns nothing of it.
TEST(Pipelines, ResumeWhereWorkersOwnNothingOfAStage) {
  for (const std::string cut : {"2", "5"}) {  // the small stage is the first, or the last
    const auto expect = [&](const std::string& optimizer, const std::string& strategy) {
      expect_resumed_bits(fmt::format("{}, {}, cut at {}", optimizer, strategy, cut), [&](Config& c) {
        c.model.layers = "dense(9) relu dense(300) batch_norm tanh dense(3)";
        c.optimizer.optimizer = optimizer;
        c.distribute.strategy = strategy;
        c.distribute.cut = {cut};
      });
    };
    for (const char* optimizer : {"adam", "adafactor", "muon"}) expect(optimizer, "zero1");
    expect("adam", "central_storage");
  }
}

// Numbers so different that their sum depends on the order; parts of the model have 0 to 2 of them.
TEST(Pipelines, AddAndJoinNumbersInTheOrderOfTheModel) {
  on_ranks({2, 3, 4}, [](Communicator& comm) {
    Pipeline pipeline(comm, {comm.size(), comm.size(), StagePlacement::kNeighbours});
    std::vector<double> all;
    std::vector<double> own;
    std::vector<Index> chunk_begins;
    double sum = 0;
    for (Index part = 0; part < 3 * pipeline.stages(); ++part) {
      const bool mine = part % pipeline.stages() == pipeline.stage();
      if (mine && part >= pipeline.stages()) chunk_begins.push_back(std::ssize(own));
      for (Index i = 0; i < part % 3; ++i) {
        const auto exponent = static_cast<int>(60 - 13 * ((7 * part + 3 * i) % 5));
        const double number = std::ldexp(i == 0 ? 1.0 + static_cast<double>(part) : -1.0, exponent);
        sum += number;
        all.push_back(number);
        if (mine) own.push_back(number);
      }
    }
    EXPECT_EQ(pipeline.sum_in_order(own, chunk_begins), sum);
    EXPECT_EQ(pipeline.join(own, chunk_begins), all);
  });
}

// Written by chunks, read as a whole, and by stages of one chunk each on four ranks.
TEST(Pipelines, ResumeChunksElsewhere) {
  for (const char* optimizer : {"adam", "adafactor"}) {
    for (const char* strategy : {"allreduce", "zero1"}) {
      expect_resumed_bits(fmt::format("chunks, {}, {}", optimizer, strategy), [&](Config& c) {
        c.model.layers = kDeep;
        c.optimizer.optimizer = optimizer;
        c.distribute.strategy = strategy;
        c.distribute.schedule = interleaved(2);
        c.train.ema = 0.9;
      });
    }
  }
}

// The owner of the weight is first and the layer that shares it last; or several share it, in its stage and
// in others, and another weight is shared beside it. These are so large that MPI sends them once they are
// received.
constexpr const char* kTied =
    "dense(3) tanh dense(9) relu dense(8) tanh dense(7) relu dense(12) tanh dense(3, tie=0)";
constexpr const char* kTiedOften =
    "dense(36) relu dense(36) tanh dense(36, tie=2) relu dense(36) tanh dense(7) batch_norm tanh dense(36) "
    "relu dense(36, tie=2) tanh dense(36, tie=6) relu dense(36, tie=2) dense(3)";

TEST(Pipelines, ShareAWeight) {
  const auto expect = [](const std::string& what, const std::function<void(Config&)>& change) {
    for (const char* layers : {kTied, kTiedOften}) {
      const auto tied = [&](Config& c) {
        c.model.layers = layers;
        change(c);
      };
      expect_bits_of_one_rank(what, tied);
      expect_bits_of_one_rank(what, tied, {interleaved(2)});
    }
  };
  expect_for_strategies(expect);
  expect("adamw, accumulate, uneven", [](Config& c) {
    c.optimizer.optimizer = "adamw";
    c.optimizer.weight_decay = 0.1;
    c.train.accumulate = 2;
    c.train.global_batch = 40;
    c.train.ema = 0.9;
    c.data.synthetic.rows = 83;
  });
  expect("spread", [](Config& c) { c.distribute.placement = StagePlacement::kSpread; });
  // In the last batch of an epoch only some replicas have a sample.
  expect("uneven, a bad step", [](Config& c) {
    c.data.synthetic.rows = 43;
    c.train.replicas = 7;
    skip_a_bad_step(c);
  });
}

TEST(Pipelines, ShareAWeightInLockstep) {
  const auto change = [](Config& c) {
    c.model.layers = kTiedOften;
    c.model.batch_norm = "sync";
    c.train.accumulate = 2;
    c.train.global_batch = 40;
    c.eval.precise_bn = 2;
  };
  expect_bits_of_one_rank("sync", change, {PipelineSchedule::kGpipe});
}

TEST(Pipelines, ShareARoundedWeight) {
  if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << "no bf16 here";
  expect_bits_of_one_rank("bf16", [](Config& c) {
    c.model.layers = kTied;
    c.model.precision = Precision::kBf16;
  });
}

TEST(Pipelines, ResumeSharedWeightsElsewhere) {
  expect_resumed_bits("tied", [](Config& c) {
    c.model.layers = kTied;
    c.optimizer.optimizer = "adam";
    c.distribute.schedule = interleaved(2);
  });
}

// Only one stage has running moments, and all measure them.
TEST(Pipelines, MeasureMomentsOfOneStageTogether) {
  expect_bits_of_one_rank("precise batch norm", [](Config& c) {
    c.model.layers = kResidual;
    c.eval.precise_bn = 3;
  });
}

// Bad numbers of any stage are found on all ranks, and the step is left out.
TEST(Pipelines, LeaveOutABadStepTogether) {
  expect_bits_of_one_rank("a bad step", skip_a_bad_step);
}

}  // namespace
}  // namespace lockstep::test::pipelines_test
