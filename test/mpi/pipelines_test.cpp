// Whatever the arrangement of the ranks into groups and stages, the numbers are those of one rank.
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/math/kernels.h"
#include "support/ranks.h"
#include "support/saving_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test::pipelines_test {
namespace {

const std::string kResidual =
    "model.layers=dense(9) relu residual(dense(9) tanh dropout(0.2) dense(9)) batch_norm relu dense(7) tanh "
    "dense(3); ";
const std::string kBadStep =
    "train.on_nan=skip; train.skip_limit=5; debug.nan_replica=5; debug.nan_step=3; debug.nan_steps=1";

Config staged(Index stages) {
  Config config = tiny_config();
  config.distribute.stages = stages;
  return config;
}

PipelineSchedule interleaved(Index chunks) {
  return {.order = PipelineSchedule::Order::kInterleaved, .chunks = chunks};
}

const std::vector<PipelineSchedule> kSchedules{PipelineSchedule::kOneForwardOneBackward,
                                               PipelineSchedule::kGpipe};
const std::string kDeep =
    "model.layers=dense(9) relu dense(9) tanh dense(8) relu dense(7) batch_norm tanh dense(6) relu "
    "dense(3); ";

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
  expect("adam, clipped, zero1",
         keys("train.optimizer=adam; train.clip_norm=0.3; distribute.strategy=zero1"));
  expect("central_storage", keys("distribute.strategy=central_storage"));
}

TEST(Pipelines, HaveTheBitsOfOneRank) {
  expect_for_strategies([](const std::string& what, const std::function<void(Config&)>& change) {
    expect_bits_of_one_rank(what, change);
  });
  expect_bits_of_one_rank("whole tensors", keys("train.optimizer=adafactor; distribute.strategy=zero1"));
  expect_bits_of_one_rank("the output's matrix", keys("train.optimizer=muon"));
}

// Groups of ranks that are no neighbours: the workers of a stage are.
TEST(Pipelines, MayBeSpread) {
  const std::string spread = "distribute.placement=spread; train.optimizer=adam; train.clip_norm=0.3";
  expect_bits_of_one_rank("spread", keys(spread), {PipelineSchedule::kOneForwardOneBackward});
  expect_bits_of_one_rank("spread, zero1", keys(kDeep + spread + "; distribute.strategy=zero1"),
                          {interleaved(2)}, 2);
}

TEST(Pipelines, PassThroughBlocksAndRandomLayers) {
  for (const std::string mode : {"local", "averaged"})
    expect_bits_of_one_rank("residual, " + mode, keys(kResidual + "model.batch_norm=" + mode));
}

// Replicas of all groups meet at a layer, wherever the model is cut: before it, behind it, or elsewhere, so
// that only one of the stages has such a layer.
TEST(Pipelines, NormaliseOverReplicas) {
  const auto expect = [](const std::string& what, const std::string& change, Index most) {
    expect_bits_of_one_rank(what, keys(change), {PipelineSchedule::kGpipe}, most);
  };
  for (const std::string mode : {"sync", "group(2)"}) {
    const std::string norm = "model.batch_norm=" + mode;
    for (const std::string cut : {"1", "2", "3"})
      expect(
          mode + ", cut at " + cut,
          "model.layers=dense(9) batch_norm relu dense(7) tanh dense(3); distribute.cut=" + cut + "; " + norm,
          2);
    expect("residual, accumulate, " + mode,
           kResidual + "train.accumulate=2; train.global_batch=40; eval.precise_bn=2; " + norm, 3);
  }
  // In the last batch of an epoch only some replicas have a sample.
  expect("uneven, a bad step",
         kResidual + "model.batch_norm=sync; data.synthetic_rows=43; train.replicas=7; " + kBadStep, 2);
}

// Each rank has two chunks of the model, or three of it on two ranks.
TEST(Pipelines, InterleaveChunks) {
  const auto expect = [](const std::string& what, const std::function<void(Config&)>& change) {
    const auto deep = [&](Config& c) {
      set_keys(c, kDeep);
      change(c);
    };
    expect_bits_of_one_rank(what, deep, {interleaved(2)});
    expect_bits_of_one_rank(what, deep, {interleaved(3)}, 2);
  };
  expect_for_strategies(expect);
  expect("whole tensors", keys("train.optimizer=muon; distribute.strategy=zero1"));
  expect("residual, accumulate", keys(kResidual + "model.batch_norm=averaged; train.accumulate=2; "
                                                  "train.global_batch=40; train.ema=0.9; eval.precise_bn=2"));
  // In the last batch of an epoch 5 of 6 replicas have a sample: a schedule of 5 would need more memory.
  expect("one less", keys("model.layers=dense(9) relu dense(9) tanh dense(8) relu dense(7) tanh dense(6) "
                          "relu dense(3); data.synthetic_rows=41; train.global_batch=18; train.replicas=6"));
  // In the last batch of an epoch only some replicas have a sample, and fewer than there are stages.
  expect("uneven, a bad step", keys("data.synthetic_rows=42; train.replicas=7; " + kBadStep));
}

TEST(Pipelines, TakePartsOfReplicasAsMicroBatches) {
  expect_bits_of_one_rank("accumulate",
                          keys(kResidual + "train.accumulate=2; train.global_batch=40; train.ema=0.9"));
}

// In the last batch of an epoch only some replicas have a sample.
TEST(Pipelines, LeaveOutReplicasWithoutSamples) {
  expect_bits_of_one_rank("uneven", keys("data.synthetic_rows=43; train.replicas=7"));
}

TEST(Pipelines, WeighSamples) {
  expect_bits_of_one_rank("class weights", [](Config& c) {
    c.train.class_weights = {"0: 1", "1: 5", "2: 0.5"};
    c.eval.class_weights = true;
  });
  // The last stage alone has them.
  for (const Index prefetch : {0, 3}) {
    expect_bits_of_one_rank("weights of records",
                            keys(fmt::format("data.weight=some; data.prefetch={}", prefetch)));
  }
}

// Stages that read no records know which samples there were.
TEST(Pipelines, CountTheSamplesOfAnEpochInEachStage) {
  for (const Index prefetch : {0, 3}) {
    expect_bits_of_one_rank("audit", keys(fmt::format("data.audit=true; data.prefetch={}", prefetch)));
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
      expect_resumed_bits(fmt::format("{}, {}, cut at {}", optimizer, strategy, cut),
                          keys(fmt::format("model.layers=dense(9) relu dense(300) batch_norm tanh dense(3); "
                                           "train.optimizer={}; distribute.strategy={}; distribute.cut={}",
                                           optimizer, strategy, cut)));
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
        set_keys(c, kDeep + fmt::format("train.optimizer={}; distribute.strategy={}; train.ema=0.9",
                                        optimizer, strategy));
        c.distribute.schedule = interleaved(2);
      });
    }
  }
}

// The owner of the weight is first and the layer that shares it last; or several share it, in its stage and
// in others, and another weight is shared beside it. These are so large that MPI sends them once they are
// received.
const std::string kTied =
    "model.layers=dense(3) tanh dense(9) relu dense(8) tanh dense(7) relu dense(12) tanh dense(3, tie=0); ";
const std::string kTiedOften =
    "model.layers=dense(36) relu dense(36) tanh dense(36, tie=2) relu dense(36) tanh dense(7) batch_norm "
    "tanh dense(36) "
    "relu dense(36, tie=2) tanh dense(36, tie=6) relu dense(36, tie=2) dense(3); ";

TEST(Pipelines, ShareAWeight) {
  const auto expect = [](const std::string& what, const std::function<void(Config&)>& change) {
    for (const std::string& layers : {kTied, kTiedOften}) {
      const auto tied = [&](Config& c) {
        set_keys(c, layers);
        change(c);
      };
      expect_bits_of_one_rank(what, tied);
      expect_bits_of_one_rank(what, tied, {interleaved(2)});
    }
  };
  expect_for_strategies(expect);
  expect("adamw, accumulate, uneven",
         keys("train.optimizer=adamw; train.weight_decay=0.1; train.accumulate=2; train.global_batch=40; "
              "train.ema=0.9; data.synthetic_rows=83"));
  expect("spread", keys("distribute.placement=spread"));
  // In the last batch of an epoch only some replicas have a sample.
  expect("uneven, a bad step", keys("data.synthetic_rows=43; train.replicas=7; " + kBadStep));
}

TEST(Pipelines, ShareAWeightInLockstep) {
  expect_bits_of_one_rank(
      "sync",
      keys(kTiedOften +
           "model.batch_norm=sync; train.accumulate=2; train.global_batch=40; eval.precise_bn=2"),
      {PipelineSchedule::kGpipe});
}

TEST(Pipelines, ShareARoundedWeight) {
  if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << "no bf16 here";
  expect_bits_of_one_rank("bf16", keys(kTied + "train.precision=bf16"));
}

TEST(Pipelines, ResumeSharedWeightsElsewhere) {
  expect_resumed_bits("tied", [](Config& c) {
    set_keys(c, kTied + "train.optimizer=adam");
    c.distribute.schedule = interleaved(2);
  });
}

// Only one stage has running moments, and all measure them.
TEST(Pipelines, MeasureMomentsOfOneStageTogether) {
  expect_bits_of_one_rank("precise batch norm", keys(kResidual + "eval.precise_bn=3"));
}

// Bad numbers of any stage are found on all ranks, and the step is left out.
TEST(Pipelines, LeaveOutABadStepTogether) {
  expect_bits_of_one_rank("a bad step", keys(kBadStep));
}

}  // namespace
}  // namespace lockstep::test::pipelines_test
