// Local SGD, step by step, against a plain computation of what it should be, and in whole trainings.
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/model.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::local_sgd_test {
namespace {

constexpr Index kReplicas = 11;
constexpr double kLr = 0.1;
constexpr double kMomentum = 0.9;

// Replica 5 has no sample in every third step; the others have one, two or three.
Index samples_of(Index step, Index replica) {
  return replica == 5 && step % 3 == 2 ? 0 : 1 + (step + replica) % 3;
}

// The mean gradient of a replica pulls each weight towards a place of its own.
double place_of(Index replica, std::size_t i) {
  constexpr std::size_t kPlaces = 4096;
  static const std::vector<double> kAll = [] {
    std::vector<double> all;
    for (Index r = 0; r < kReplicas; ++r) {
      for (std::size_t place = 0; place < kPlaces; ++place)
        all.push_back(std::sin(static_cast<double>(r) + 0.1 * static_cast<double>(place)));
    }
    return all;
  }();
  return kAll.at(static_cast<std::size_t>(replica) * kPlaces + i);
}

double gradient_of(double weight, Index replica, std::size_t i) {
  return weight - place_of(replica, i);
}

// What the strategy should do, written down replica by replica in double.
struct Plain {
  using Numbers = std::vector<double>;
  DistOptions options;
  Index local_from;
  std::vector<Numbers> weights;
  std::vector<Numbers> momentum;
  Numbers last, velocity;
  Numbers alone = Numbers(kReplicas);  // samples since the last average

  Plain(const DistOptions& given, Index together, std::size_t size)
      : options(given),
        local_from(together),
        weights(kReplicas, Numbers(size, 1.0)),
        momentum(kReplicas, Numbers(size)),
        last(size, 1.0),
        velocity(size) {}

  // Each replica counts by what it has learned from alone.
  Numbers mean(const std::vector<Numbers>& all) const {
    const double samples = std::accumulate(alone.begin(), alone.end(), 0.0);
    if (samples == 0) return all.front();
    Numbers sum(all.front().size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += all[r][i] * alone[r] / samples;
    }
    return sum;
  }

  void move(Index replica, std::size_t i, double gradient) {
    const auto r = static_cast<std::size_t>(replica);
    momentum[r][i] = kMomentum * momentum[r][i] + gradient;
    weights[r][i] -= kLr * momentum[r][i];
  }

  void step(Index step) {
    for (Index r = 0; step >= local_from && r < kReplicas; ++r)
      at(alone, r) += static_cast<double>(samples_of(step, r));
    for (std::size_t i = 0; i < last.size(); ++i) {
      if (step >= local_from) {
        for (Index r = 0; r < kReplicas; ++r) {
          if (samples_of(step, r) > 0) move(r, i, gradient_of(at(weights, r)[i], r, i));
        }
        continue;
      }
      double sum = 0;
      double samples = 0;
      for (Index r = 0; r < kReplicas; ++r) {
        const auto count = static_cast<double>(samples_of(step, r));
        sum += count * gradient_of(weights.front()[i], r, i);
        samples += count;
      }
      for (Index r = 0; r < kReplicas; ++r) move(r, i, sum / samples);
    }
    if (step < local_from) last = weights.front();
    if (averages(step)) average();
  }

  // Of the mean gradient that the first replica moves along.
  double gradient_norm(Index step, const Layout& layout) const {
    double squares = 0;
    for (const ParamInfo& param : layout.params) {
      for (Index place = param.range.begin; place < param.range.end; ++place) {
        double sum = 0;
        double samples = 0;
        for (Index r = 0; r < (step < local_from ? kReplicas : 1); ++r) {
          const auto count = static_cast<double>(samples_of(step, r));
          sum += count * gradient_of(at(at(weights, r), place), r, static_cast<std::size_t>(place));
          samples += count;
        }
        squares += sum / samples * (sum / samples);
      }
    }
    return std::sqrt(squares);
  }

  bool averages(Index step) const {
    return step >= local_from && (step + 1 - local_from) % options.average_every == 0;
  }

  void average() {
    const Numbers all = mean(weights);
    Numbers next(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double change = options.block_lr * (all[i] - last[i]);
      velocity[i] = options.block_momentum * velocity[i] + change;
      next[i] = last[i] + velocity[i];
      if (options.block_nesterov) next[i] = last[i] + change + options.block_momentum * velocity[i];
    }
    last = next;
    weights.assign(kReplicas, next);
    if (options.average_state) momentum.assign(kReplicas, mean(momentum));
    alone.assign(kReplicas, 0);
  }
};

// A strategy without a model: the test is what gives gradients.
class Driven {
 public:
  Driven(Communicator& comm, const DistOptions& options, Index local_from)
      : options_(options),
        layout_(Model({.layers = "dense(70) dense(3)"}, {{40}}).layout()),
        plan_(make_plan(options_, layout_, {.world = comm.size(), .replicas = kReplicas})),
        hosted_(plan_.hosted_by(comm.rank())),
        optimizer_(find_entry(optimizer_catalog(), "optimizer", "sgd").make({.momentum = kMomentum})) {
    plan_.local_from = local_from;
    auto made = find_entry(strategy_catalog(), "strategy", "local_sgd")
                    .make({.comm = comm,
                           .options = options_,
                           .plan = plan_,
                           .layout = layout_,
                           .optimizer = *optimizer_,
                           .rules = {},
                           .team = team_});
    strategy_.reset(made.release()->synchronous());
    if (comm.rank() == 0) std::ranges::fill(strategy_->weights(0), Scalar{1});
    for (Index i = 0; i < hosted_.size(); ++i) arenas_.push_back(strategy_->gradient_arena());
    strategy_->start();
  }

  // `bad`: a replica whose gradient is not finite in this step.
  StepOutcome step(Index step, std::optional<Index> bad = {}) {
    std::vector<Index> samples;
    for (Index r = 0; r < kReplicas; ++r) samples.push_back(samples_of(step, r));
    strategy_->begin_step(samples, 0);
    PartialGrads partial;
    for (Index r = hosted_.begin; r < hosted_.end; ++r) {
      const auto count = static_cast<Scalar>(samples_of(step, r));
      if (count == 0) continue;
      const std::span<Scalar> arena = at(arenas_, r - hosted_.begin);
      const std::span<const Scalar> weights = strategy_->weights(r);
      for (std::size_t i = 0; i < weights.size(); ++i)
        arena[i] = count * static_cast<Scalar>(gradient_of(static_cast<double>(weights[i]), r, i));
      at(arena, plan_.loss_offset) = count;
      if (r == bad) arena[0] = std::numeric_limits<Scalar>::quiet_NaN();
      partial.subtrees.push_back({r, r + 1});
      partial.sums.push_back(arena);
    }
    for (const Bucket& bucket : plan_.buckets) strategy_->bucket_ready(bucket, partial);
    strategy_->finish_exchange();
    const std::vector<double> weights(samples.begin() + hosted_.begin, samples.begin() + hosted_.end);
    return strategy_->update({.step = step + 1,
                              .weight = std::accumulate(samples.begin(), samples.end(), 0.0),
                              .lr = kLr,
                              .replica_weights = weights,
                              .statistics = &statistics_});
  }
  const UpdateStatistics& statistics() const { return statistics_; }

  SynchronousStrategy& strategy() { return *strategy_; }
  Range hosted() const { return hosted_; }
  std::size_t size() const { return static_cast<std::size_t>(layout_.size); }
  const Layout& layout() const { return layout_; }

 private:
  DistOptions options_;
  Layout layout_;
  Plan plan_;
  Range hosted_;
  std::unique_ptr<Optimizer> optimizer_;
  ThreadTeam team_{1};
  std::unique_ptr<SynchronousStrategy> strategy_;
  std::vector<std::span<Scalar>> arenas_;
  UpdateStatistics statistics_;
};

// The gaps between tensors are nobody's.
void expect_near(const Layout& layout, std::span<const Scalar> found, const std::vector<double>& wanted) {
  for (const ParamInfo& param : layout.params) {
    double most = 0;
    for (Index place = param.range.begin; place < param.range.end; ++place) {
      const auto i = static_cast<std::size_t>(place);
      most = std::max(most, std::abs(static_cast<double>(found[i]) - wanted[i]));
    }
    EXPECT_LT(most, 2e-5) << param.name;
  }
}

struct Setting {
  std::string name;
  Index local_from = 0;
  DistOptions options = {};
};

std::vector<Setting> settings() {
  return {{"average", 0, {.average_every = 4}},
          {"average in buckets", 0, {.bucket_kib = 0, .average_every = 4}},
          {"average after each step", 0, {.average_every = 1}},
          {"state too", 0, {.average_every = 4, .average_state = true}},
          {"post-local", 5, {.bucket_kib = 0, .average_every = 3}},
          {"post-local with state and block momentum",
           5,
           {.average_every = 3, .average_state = true, .block_momentum = 0.5}},
          {"block momentum", 0, {.average_every = 3, .block_momentum = 0.5, .block_lr = 0.7}},
          {"block learning rate", 0, {.average_every = 3, .block_lr = 0.5}},
          {"nesterov", 0, {.average_every = 3, .block_momentum = 0.5, .block_nesterov = true}}};
}

TEST(LocalSgd, IsThePlainComputation) {
  for (const Setting& setting : settings()) {
    for (const Reduction reduction : {Reduction::kOrdered, Reduction::kNative}) {
      DistOptions options = setting.options;
      options.reduction = reduction;
      test::on_ranks([&](Communicator& comm) {
        SCOPED_TRACE(setting.name + (reduction == Reduction::kOrdered ? ", ordered" : ", native"));
        Driven driven(comm, options, setting.local_from);
        Plain plain(options, setting.local_from, driven.size());
        for (Index step = 0; step < 14; ++step) {
          SCOPED_TRACE("step " + std::to_string(step));
          const double norm = plain.gradient_norm(step, driven.layout());
          EXPECT_TRUE(driven.step(step).applied);
          if (comm.rank() == 0) {
            EXPECT_NEAR(driven.statistics().gradient_norm, norm, 1e-5 * norm);
          }
          plain.step(step);
          const std::span<const Scalar> settled = driven.strategy().gather_model();
          expect_near(driven.layout(), settled, plain.mean(plain.weights));
          for (Index r = driven.hosted().begin; r < driven.hosted().end; ++r)
            expect_near(driven.layout(), driven.strategy().weights(r), at(plain.weights, r));
          EXPECT_EQ(driven.strategy().late_bad_number(), "");
        }
      });
    }
  }
}

TEST(LocalSgd, ReplicasDifferBetweenAveragesAndAreEqualAfterOne) {
  test::on_ranks([](Communicator& comm) {
    Driven driven(comm, {.reduction = Reduction::kOrdered, .average_every = 3}, 0);
    for (Index step = 0; step < 6; ++step) {
      driven.step(step);
      const std::span<const Scalar> mine = driven.strategy().weights(driven.hosted().begin);
      std::vector<Scalar> first(mine.begin(), mine.end());
      comm.broadcast(as_buffer(std::span(first)), 0);
      for (Index r = std::max<Index>(1, driven.hosted().begin); r < driven.hosted().end; ++r)
        EXPECT_EQ(std::ranges::equal(driven.strategy().weights(r), first), step % 3 == 2) << "replica " << r;
    }
  });
}

TEST(LocalSgd, ABadNumberStopsItsReplicaAtOnceAndAllAtTheNextAverage) {
  for (const Reduction reduction : {Reduction::kOrdered, Reduction::kNative}) {
    test::on_ranks([&](Communicator& comm) {
      Driven driven(comm, {.reduction = reduction, .average_every = 5}, 0);
      std::vector<Scalar> before;
      const auto weights = [&](Index r) {
        const std::span<const Scalar> now = driven.strategy().weights(r);
        return std::vector<Scalar>(now.begin(), now.end());
      };
      const bool here = driven.hosted().contains(7);
      for (Index step = 0; step < 5; ++step) {
        if (step == 2 && here) before = weights(7);
        // Replica 9 follows: the first one is told.
        const StepOutcome outcome = driven.step(step, step == 2 ? 7 : step == 3 ? 9 : -1);
        EXPECT_EQ(outcome.applied, step < 4);
        EXPECT_EQ(std::ranges::count(outcome.stopped, 7), step >= 2 && here ? 1 : 0);
      }
      if (here) {
        EXPECT_EQ(weights(7), before);
      }
      EXPECT_EQ(driven.strategy().late_bad_number(),
                "step 3: replica 7: the gradient of 0.weight is not finite or beyond 1e18");
      const std::span<const Scalar> settled = driven.strategy().gather_model();
      EXPECT_TRUE(std::ranges::all_of(settled, [](Scalar w) { return std::isfinite(w); }));
    });
  }
}

using namespace test;

Config local_config() {
  Config config = tiny_config("distribute.strategy=local_sgd");
  return config;
}

double largest_difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(LocalSgdRuns, AveragingPlainSgdAfterEachStepIsAllreduceWhereReplicasHaveEqualSamples) {
  Config config = local_config();
  set_keys(config,
           "data.synthetic_rows=96; train.global_batch=24; train.momentum=0; distribute.average_every=1");
  Config other = config;
  other.distribute.strategy = "allreduce";
  const TinyResult allreduce = train_tiny_alone(other);
  for (const Reduction reduction : {Reduction::kOrdered, Reduction::kNative}) {
    config.distribute.reduction = reduction;
    test::on_ranks([&](Communicator& comm) {
      EXPECT_LT(largest_difference(train_tiny(comm, config).weights, allreduce.weights), 1e-6);
    });
  }
  config.distribute.average_every = 4;
  EXPECT_GT(largest_difference(train_tiny_alone(config).weights, allreduce.weights), 1e-4);
}

TEST(LocalSgdRuns, UntilLocalAfterItIsAllreduce) {
  Config config = local_config();
  set_keys(config, "train.optimizer=adam; train.clip_norm=0.5");
  config.data.synthetic.rows = 83;  // a short last batch, with empty replicas
  Config other = config;
  other.distribute.strategy = "allreduce";
  const TinyResult allreduce = train_tiny_alone(other);
  for (const char* time : {"15 steps", "249 samples", "3 epochs", "100 epochs"}) {
    config.distribute.local_after = time;
    test::on_ranks([&](Communicator& comm) {
      const TinyResult result = train_tiny(comm, config);
      EXPECT_EQ(result.weights, allreduce.weights) << time;
      if (comm.rank() == 0) {
        EXPECT_EQ(result.losses, allreduce.losses);
      }
      Config native = config;
      native.distribute.reduction = Reduction::kNative;
      EXPECT_LT(largest_difference(train_tiny(comm, native).weights, allreduce.weights), 1e-4);
    });
  }
  config.distribute.local_after = "2 epochs";
  EXPECT_GT(largest_difference(train_tiny_alone(config).weights, allreduce.weights), 1e-4);
}

// The weights at the end are the same whether an interval ends there or not, so the moments must be too.
TEST(LocalSgdRuns, PreciseBatchNormMeasuresTheSettledWeights) {
  Config config = local_config();
  set_keys(config,
           "model.layers=dense(9) batch_norm relu dense(3); train.epochs=0; train.steps=5; "
           "eval.precise_bn=4; distribute.average_every=5");
  Config longer = config;
  longer.distribute.average_every = 6;
  test::on_ranks([&](Communicator& comm) {
    const TinyResult met = train_tiny(comm, config);
    const TinyResult open = train_tiny(comm, longer);
    EXPECT_EQ(open.weights, met.weights);
    EXPECT_EQ(open.state, met.state);
    EXPECT_EQ(open.training.evaluation()->loss, met.training.evaluation()->loss);
  });
}

TEST(LocalSgdRuns, ALossThatIsNotANumberStopsAllRanksAlike) {
  Config config = local_config();
  set_keys(config, "model.layers=dense(9) dense(3); train.lr=1e6");
  for (const Index every : {4, 1000}) {  // at an average, and at the end of the run
    config.distribute.average_every = every;
    std::string alone;
    try {
      train_tiny_alone(config);
    } catch (const Error& error) {
      alone = error.what();
    }
    EXPECT_TRUE(alone.starts_with("step ")) << alone;
    EXPECT_NE(alone.find(": replica "), std::string::npos) << alone;
    test::on_ranks([&](Communicator& comm) {
      try {
        train_tiny(comm, config);
        FAIL() << "training went on";
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), kExitTraining);
        EXPECT_EQ(error.what(), alone);
      }
    });
  }
}

TEST(LocalSgdRuns, RefusesBatchNormOverReplicas) {
  for (const char* mode : {"averaged", "sync", "group(2)"}) {
    Config config = local_config();
    config.model.layers = "dense(9) batch_norm dense(3)";
    config.model.batch_norm = mode;
    EXPECT_THROW(train_tiny_alone(config), ConfigError) << mode;
  }
}

}  // namespace
}  // namespace lockstep::local_sgd_test
