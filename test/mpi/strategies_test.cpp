// Every promise of every strategy in the catalog, on whole trainings.
#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/loaded.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::strategies_test {
namespace {

using namespace test;

struct Case {
  std::string name;
  Config config;
};

// What a user may combine with any strategy.
std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const auto& change) {
    Case one{name, tiny_config()};
    one.config.train.epochs = 2;
    change(one.config);
    all.push_back(one);
  };
  add("sgd momentum, shard", [](Config&) {});
  add("adam, shard", keys("train.optimizer=adam"));
  add("lamb", keys("train.optimizer=lamb"));
  add("muon, clipped", keys("train.optimizer=muon; train.clip_norm=0.5; train.weight_decay=0.01"));
  add("adafactor, a bucket for each layer", keys("train.optimizer=adafactor; distribute.bucket_kib=0"));
  add("sgd momentum, full", keys("data.mode=full"));
  add("adam, full", keys("data.mode=full; train.optimizer=adam"));
  add("replicas that no rank count divides", keys("train.replicas=11"));
  add("short last batch with empty replicas", [](Config& c) {
    c.data.synthetic.rows = 83;  // four batches of 20 and one of 3 samples for 8 replicas
  });
  add("tail dropped", keys("train.tail=drop"));
  add("a bucket for each layer", keys("distribute.bucket_kib=0"));
  for (const std::string mode : {"local", "averaged", "sync", "group(3)"}) {
    add("batch norm " + mode, [&](Config& c) {
      c.model.layers = "dense(9) batch_norm relu dropout(0.2) dense(7) batch_norm tanh dense(3)";
      c.model.batch_norm = mode;
      c.data.synthetic.rows = 83;
      c.eval.precise_bn = mode == "averaged" ? 3 : 0;
      c.train.accumulate = mode == "sync" ? 2 : 1;
    });
  }
  for (const Index ranks : {1, 2, 3}) {
    add("nodes of " + std::to_string(ranks), [&](Config& c) {
      c.debug.ranks_per_node = ranks;
      set_keys(c, "train.replicas=11; train.clip_norm=0.5");
    });
  }
  add("clipping, decay, accumulation",
      keys("train.clip_norm=0.5; train.weight_decay=0.01; train.accumulate=2"));
  return all;
}

void expect_close(const std::vector<Scalar>& a, const std::vector<Scalar>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(static_cast<double>(b[i])))) << "weight " << i;
}

// Replicas that step alone refuse batch norm over replicas.
bool refused(const StrategyEntry& entry, const Config& config) {
  return entry.weights_per_replica && config.model.batch_norm != ModelOptions{}.batch_norm;
}

// One rank with plain ordered allreduce, trained once for all tests.
const TinyResult& allreduce_alone(const Case& one) {
  static std::map<std::string, TinyResult> results;
  const auto found = results.find(one.name);
  return found != results.end() ? found->second
                                : results.emplace(one.name, train_tiny_alone(one.config)).first->second;
}

// Every case with every strategy that keeps `promise`, on any number of ranks, beside one rank with plain
// ordered allreduce or, where replicas step alone, with the same strategy: compare(result, alone, comm).
// Numbers of ranks as threads take turns, so that each strategy has each number with several cases. So do one
// and two threads of a rank, with every strategy, every case and every number of ranks.
using Compare = std::function<void(const TinyResult&, const TinyResult&, Communicator&)>;

void walk_cases(bool Promises::*promise, Reduction reduction, const Compare& compare) {
  for (Index strategy = 0; const StrategyEntry& entry : strategy_catalog()) {
    if (!(entry.promises.*promise)) continue;
    ++strategy;
    for (Index turn = 0; const Case& one : cases()) {
      ++turn;
      if (refused(entry, one.config)) continue;
      SCOPED_TRACE(entry.name + ": " + one.name);
      Config config = one.config;
      config.distribute.strategy = entry.name;
      const TinyResult own = entry.weights_per_replica ? train_tiny_alone(config) : TinyResult();
      const TinyResult& alone = entry.weights_per_replica ? own : allreduce_alone(one);
      config.distribute.reduction = reduction;
      test::on_ranks(test::counts_of_turn(strategy + turn), [&](Communicator& comm) {
        for (const Index servers : entry.has_servers ? std::vector<Index>{1, 2} : std::vector<Index>{0}) {
          const Index workers = comm.size() - servers;
          if (workers < 1) continue;
          Config here = config;
          here.train.threads =
              std::min(1 + (turn / 2 + comm.size() + servers) % 2, config.train.replicas / workers);
          here.distribute.servers = servers;
          SCOPED_TRACE(std::to_string(servers) + " servers, threads " + std::to_string(here.train.threads));
          compare(train_tiny(comm, here), alone, comm);
        }
      });
    }
  }
}

TEST(Strategies, SameBitsOnAnyNumberOfRanksAndThreads) {
  walk_cases(&Promises::same_bits, Reduction::kOrdered,
             [](const TinyResult& result, const TinyResult& alone, Communicator& comm) {
               EXPECT_EQ(result.weights, alone.weights);
               EXPECT_EQ(result.state, alone.state);
               EXPECT_EQ(result.training.evaluation()->loss, alone.training.evaluation()->loss);
               if (comm.rank() == 0) {
                 EXPECT_EQ(result.losses, alone.losses);
               }
             });
}

TEST(Strategies, SameBitsAloneOnAnyNumberOfRanksAndThreads) {
  walk_cases(&Promises::same_bits_alone, Reduction::kOrdered,
             [](const TinyResult& result, const TinyResult& alone, Communicator&) {
               EXPECT_EQ(result.weights, alone.weights);
               EXPECT_EQ(result.state, alone.state);
               EXPECT_EQ(result.training.evaluation()->loss, alone.training.evaluation()->loss);
             });
}

TEST(Strategies, NativeReductionIsCloseToOrderedAndReplicasAreIdentical) {
  walk_cases(&Promises::identical_replicas, Reduction::kNative,
             [](const TinyResult& result, const TinyResult& ordered, Communicator& comm) {
               expect_close(result.weights, ordered.weights, 1e-4);
               std::vector<Scalar> first = result.weights;
               comm.broadcast(as_buffer(std::span(first)), 0);
               EXPECT_EQ(first, result.weights);
             });
}

// Gives one replica all the samples of R replicas, replica after replica.
class MergedSampler final : public Sampler {
 public:
  MergedSampler(SamplingOptions options, Index replicas) : replicas_(replicas) {
    options.replicas = replicas;
    inner_ = make_sampler(options);
  }
  const EpochPlan& epoch() const override { return inner_->epoch(); }
  Index replicas() const override { return 1; }
  Index count(Index step, Index) const override { return inner_->step_samples(step); }
  Index max_count() const override { return inner_->max_count() * replicas_; }
  Index step_samples(Index step) const override { return inner_->step_samples(step); }
  void ids(Index step, Index, std::vector<Index>& out) const override {
    out.clear();
    std::vector<Index> part;
    for (Index replica = 0; replica < replicas_; ++replica) {
      inner_->ids(step, replica, part);
      out.insert(out.end(), part.begin(), part.end());
    }
  }
  Index walk(Index step, Index) const override { return inner_->walk(step, 0); }
  Range replicas_of(Index) const override { return {0, 1}; }
  Index needed(Range) const override { return 101; }

 private:
  Index replicas_;
  std::unique_ptr<Sampler> inner_;
};

TEST(Strategies, AStepOfManyReplicasIsTheStepOfOneOnTheSameSamples) {
  Config config = tiny_config("train.epochs=0");
  Index turn = 0;
  for (const Index steps : {1, 2, 7}) {
    for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
      config.train.steps = steps;
      config.data.mode = mode;
      Config single = config;
      set_keys(single, "train.replicas=1; distribute.strategy=allreduce");
      const TinyResult one = train_tiny_alone(single, [&](const SamplingOptions& options) {
        return std::make_unique<MergedSampler>(options, config.train.replicas);
      });
      for (const StrategyEntry& entry : strategy_catalog()) {
        if (entry.weights_per_replica) continue;
        SCOPED_TRACE(entry.name);
        config.distribute.strategy = entry.name;
        for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
          config.distribute.reduction = reduction;
          test::on_ranks(test::counts_of_turn(++turn), [&](Communicator& comm) {
            if (comm.size() <= count_servers(config.distribute)) return;
            const TinyResult many = train_tiny(comm, config);
            expect_close(many.weights, one.weights, 1e-6 * static_cast<double>(steps));
          });
        }
      }
    }
  }
}

TEST(Strategies, AccumulationChangesOnlyTheRounding) {
  Config config = tiny_config("train.epochs=0; train.steps=1");
  const TinyResult whole = train_tiny_alone(config);
  for (const Index parts : {2, 3, 100}) {
    config.train.accumulate = parts;
    test::on_ranks(
        [&](Communicator& comm) { expect_close(train_tiny(comm, config).weights, whole.weights, 1e-6); });
  }
}

TEST(Strategies, EachTestSampleIsEvaluatedOnce) {
  test::on_ranks([](Communicator& comm) {
    Config config = tiny_config("train.epochs=0; train.steps=1");
    const EvalMetrics metrics = *train_tiny(comm, config).training.evaluation();
    EXPECT_EQ(metrics.samples, 53);
    Index counted = 0;
    Index right = 0;
    for (std::size_t i = 0; i < metrics.confusion.size(); ++i) {
      counted += metrics.confusion[i];
      if (i / 3 == i % 3) right += metrics.confusion[i];
    }
    EXPECT_EQ(counted, 53);
    EXPECT_DOUBLE_EQ(*metrics.accuracy, static_cast<double>(right) / 53);
    EXPECT_GE(*metrics.top_k_accuracy, *metrics.accuracy);
  });
}

TEST(Strategies, ALossThatIsNotANumberStopsAllRanksWithStepAndLayer) {
  test::on_ranks([](Communicator& comm) {
    Config config = tiny_config();
    config.model.layers = "dense(9) dense(3)";  // nothing that could saturate or die
    config.schedule.lr = 1e6;
    try {
      train_tiny(comm, config);
      FAIL() << "training went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      EXPECT_NE(std::string(error.what()).find("layer"), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("step ")) << error.what();
    }
  });
}

TEST(Strategies, TrainingLearns) {
  Config config = tiny_config("train.epochs=30");
  const TinyResult result = train_tiny_alone(config);
  EXPECT_LT(result.losses.back(), 0.5 * result.losses.front());
  EXPECT_GT(*result.training.evaluation()->accuracy, 0.6);
}

// Features of the whole training set, with their moments.
TEST(Strategies, PreciseBatchNormHasTheMomentsOfTheDataItself) {
  Config config =
      tiny_config("model.layers=batch_norm(momentum=0.01) dense(3); model.batch_norm=sync; train.epochs=1");
  const auto source = choose_format(config.data).open({config.data, Split::kTrain, 1, alone()});
  const Index rows = source->info().rows;
  const Index width = source->info().features.size();
  const auto records = test::load(*source, test::everything(*source), {});
  const std::vector<Index> ids = test::wanted_ids(rows, test::everything(*source));
  const std::vector<Scalar> features = test::gather(*records, source->info(), ids).features;
  const Eigen::MatrixXd wide = as_eigen(ConstMatrix(features.data(), rows, width)).cast<double>();
  const Eigen::RowVectorXd mean = wide.colwise().mean();
  const Eigen::RowVectorXd variance =
      (wide.rowwise() - mean).colwise().squaredNorm() / static_cast<double>(rows - 1);

  config.eval.precise_bn = 1000;  // no more than the run has: an epoch
  test::on_ranks([&](Communicator& comm) {
    const TinyResult precise = train_tiny(comm, config);
    Config moving = config;
    moving.eval.precise_bn = 0;
    const TinyResult average = train_tiny(comm, moving);
    EXPECT_EQ(precise.weights, average.weights);  // only what evaluation uses differs
    const std::size_t second = precise.state.size() / 2;
    for (Index c = 0; c < width; ++c) {
      const auto i = static_cast<std::size_t>(c);
      EXPECT_NEAR(precise.state[i], mean[c], 1e-5);
      EXPECT_NEAR(precise.state[second + i], variance[c], 1e-5);
      EXPECT_GT(std::abs(static_cast<double>(average.state[second + i]) - variance[c]), 1e-3);
    }
  });
}

}  // namespace
}  // namespace lockstep::strategies_test
