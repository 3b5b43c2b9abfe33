// Every lossy codec in the catalog, with every synchronous strategy, on whole trainings; and the exchange
// alone.
#include "lockstep/base/errors.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::lossy_codecs_test {
namespace {

using namespace test;

Config native_config() {
  Config config = tiny_config("distribute.reduction=native");
  config.distribute.bucket_kib = 0;  // a bucket for each layer
  config.debug.ranks_per_node = 2;
  return config;
}

// Calls back for every lossy codec, with every strategy that takes one, with and without error feedback.
void walk_wires(const std::function<void(const Config&)>& visit) {
  for (const CodecEntry& codec : codec_catalog()) {
    for (const StrategyEntry& strategy : strategy_catalog()) {
      if (strategy.weights_per_replica) continue;
      for (const bool feedback : {true, false}) {
        Config config = native_config();
        config.distribute.compression = codec.name;
        config.distribute.strategy = strategy.name;
        config.distribute.error_feedback = feedback;
        config.distribute.top_k = 0.1;
        if (make_codec(config.distribute) == nullptr) continue;
        SCOPED_TRACE(codec.name + ", " + strategy.name + (feedback ? "" : ", no error feedback"));
        visit(config);
      }
    }
  }
}

double distance(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i] - b[i]), 2);
  return std::sqrt(sum);
}

// Whether two nodes, or a worker and a server, exchange gradients: else nothing is lossy.
bool gradients_exchanged(const Config& config, Communicator& comm) {
  return comm.size() > (config.distribute.strategy == "central_storage" ? config.debug.ranks_per_node : 1);
}

TEST(LossyCodecs, ReplicasStayIdenticalAndWeightsCloseToThoseOfFp32) {
  const TinyResult exact = train_tiny_alone(native_config());
  walk_wires([&](const Config& config) {
    const bool rounds = config.distribute.compression != "top_k";
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() <= count_servers(config.distribute)) return;
      const TinyResult result = train_tiny(comm, config);
      std::vector<Scalar> first = result.weights;
      comm.broadcast(as_buffer(std::span(first)), 0);
      EXPECT_EQ(first, result.weights);
      const double far = distance(result.weights, exact.weights);
      if (!gradients_exchanged(config, comm)) {
        EXPECT_LT(far, 1e-5);
        return;
      }
      EXPECT_GT(far, 1e-5) << "nothing was lost: the codec is not in use";
      if (rounds) {
        EXPECT_LT(far, 0.02);
      }
    });
  });
}

// Messages are added rank by rank, so lossy compression is also free of MPI's choices.
TEST(LossyCodecs, TheSameRunGivesTheSameBits) {
  walk_wires([](const Config& config) {
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() <= count_servers(config.distribute) || comm.size() > 4) return;
      EXPECT_EQ(train_tiny(comm, config).weights, train_tiny(comm, config).weights);
    });
  });
}

TEST(LossyCodecs, TheyLearn) {
  walk_wires([](const Config& config) {
    if (!config.distribute.error_feedback) return;
    Config longer = config;
    longer.train.epochs = 30;
    longer.schedule.lr = 0.02;  // with top_k, error feedback and momentum 0.05 is at the border of diverging
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() <= count_servers(longer.distribute) || comm.size() > 4) return;
      const TinyResult result = train_tiny(comm, longer);
      EXPECT_GT(*result.training.evaluation()->accuracy, 0.6);
      if (comm.rank() == 0) {
        EXPECT_LT(result.losses.back(), 0.6 * result.losses.front());
      }
    });
  });
}

TEST(LossyCodecs, ALossThatIsNotANumberStopsAllRanksAsWithFp32) {
  const auto error_of = [](Communicator& comm, const Config& config) -> std::string {
    try {
      train_tiny(comm, config);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      return error.what();
    }
    return "training went on";
  };
  walk_wires([&](Config config) {
    config.model.layers = "dense(9) dense(3)";  // nothing that could saturate or die
    config.schedule.lr = 1e6;
    test::on_ranks([&](Communicator& comm) {
      if (comm.size() <= count_servers(config.distribute)) return;
      const std::string error = error_of(comm, config);
      EXPECT_TRUE(error.starts_with("step ")) << error;
      EXPECT_NE(error.find("replica "), std::string::npos) << error;
    });
  });
}

// One bucket of a gradient that one rank holds after the other, through a reducer.
struct Exchange {
  Plan plan;
  std::unique_ptr<Reducer> reducer;
  AlignedBuffer<Scalar> arena;

  // `size`: numbers in front of the loss.
  Exchange(Communicator& comm, const DistOptions& options, Index size) : arena(size + kAlignment) {
    plan.world = comm.size();
    plan.replicas = comm.size();
    plan.loss_offset = size;
    plan.gradient_size = arena.size();
    plan.buckets = {{.range = {0, arena.size()}}};
    plan.slices.emplace_back();
    for (Index rank = 0; rank < comm.size(); ++rank) {
      plan.hosted.push_back({rank, rank + 1});
      plan.slices[0].push_back(split_evenly(arena.size(), comm.size(), rank, kAlignment));
    }
    reducer = make_reducer({.comm = comm, .plan = plan, .options = options});
  }

  void exchange_owners(Communicator& comm, const DistOptions& options) {
    std::ranges::reverse(plan.slices[0]);
    reducer = make_reducer({.comm = comm, .plan = plan, .options = options});
  }

  std::span<const Scalar> sum() {
    const std::vector<Index> samples(static_cast<std::size_t>(plan.replicas), 1);
    reducer->begin_step(samples);
    reducer->bucket_ready(plan.buckets[0], {.subtrees = {{0, 1}}, .sums = {arena.span()}});
    return reducer->finish();
  }
};

// The gradient of one number is always larger than those of all others, which alone lead to the minimum:
// minimise sum over i of (w_i - 1)^2 / 2, plus for w_0 a noise that is 0 on average. Top k sends w_0 alone.
double error_after_descent(Communicator& comm, bool feedback) {
  constexpr Index kSize = 16;
  DistOptions options;
  options.compression = "top_k";
  options.top_k = 1.0 / 32;  // one number of each slice
  options.error_feedback = feedback;
  Exchange exchange(comm, options, kSize * comm.size());
  std::vector<Scalar> weights(static_cast<std::size_t>(kSize * comm.size()));
  for (int step = 0; step < 2000; ++step) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Scalar noise = i % kSize == 0 ? (step % 2 == 0 ? 5.0F : -5.0F) : 0.0F;
      exchange.arena.span()[i] = weights[i] - 1 + noise;
    }
    const std::span<const Scalar> sum = exchange.sum();
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] -= 0.02F * sum[i] / static_cast<Scalar>(comm.size());
  }
  double worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i % kSize != 0) worst = std::max(worst, std::abs(static_cast<double>(weights[i]) - 1));
  }
  return worst;
}

TEST(LossyCodecs, TopKLearnsWhatItNeverChoosesByErrorFeedbackOnly) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() == 1) return;
    EXPECT_LT(error_after_descent(comm, true), 0.2);
    EXPECT_EQ(error_after_descent(comm, false), 1) << "the numbers moved: this test sees nothing";
  });
}

TEST(LossyCodecs, TheSumDoesNotDependOnWhoOwnsASlice) {
  walk_wires([](const Config& config) {
    if (config.distribute.strategy != "allreduce") return;
    test::on_ranks([&](Communicator& comm) {
      Exchange exchange(comm, config.distribute, kAlignment * (3 * comm.size() - 1));
      for (std::size_t i = 0; i < exchange.arena.span().size(); ++i) {
        exchange.arena.span()[i] =
            std::sin(static_cast<Scalar>(i + 1) * static_cast<Scalar>(comm.rank() + 1));
      }
      const std::span<const Scalar> sum = exchange.sum();
      const std::vector<Scalar> before(sum.begin(), sum.end());
      exchange.exchange_owners(comm, config.distribute);
      EXPECT_TRUE(std::ranges::equal(exchange.sum(), before));
    });
  });
}

TEST(LossyCodecs, BadAndHugeGradientsAndTheLossArriveEverywhere) {
  walk_wires([](const Config& config) {
    if (config.distribute.strategy != "allreduce") return;
    test::on_ranks([&](Communicator& comm) {
      Exchange exchange(comm, config.distribute, 100);
      const std::span<Scalar> mine = exchange.arena.span();
      const Scalar loss = 1.0F / 3;
      for (const Scalar bad : {1e30F, std::numeric_limits<Scalar>::infinity(), std::nanf("")}) {
        for (Index i = 0; i < 100; ++i) at(mine, i) = static_cast<Scalar>(i % 7);
        if (comm.rank() == comm.size() - 1) mine[42] = bad;
        mine[100] = loss * static_cast<Scalar>(1 + comm.rank());
        const std::span<const Scalar> sum = exchange.sum();
        EXPECT_FALSE(sum[42] < 0.9e30F) << sum[42];
        Scalar losses = 0;
        for (int rank = 0; rank < comm.size(); ++rank) losses += loss * static_cast<Scalar>(1 + rank);
        EXPECT_EQ(sum[100], losses);
      }
    });
  });
}

}  // namespace
}  // namespace lockstep::lossy_codecs_test
