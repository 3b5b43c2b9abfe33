// Every exchange algorithm of the catalog, and the choice among them: on any number of ranks and nodes, with
// buckets that overlap, against sums in double.
#include "lockstep/distributed/exchange/algorithm.h"

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/distributed/exchange/calibration.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "support/error_text.h"
#include "support/exchanging.h"
#include "support/ranks.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::algorithms_test {
namespace {

using namespace test;
using Case = test::ExchangeCase;

// Every algorithm, auto with and without calibration, with every reduction that it takes.
void walk(const std::function<void(const Case&)>& visit) {
  std::vector<DistOptions> all;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
      if (!entry.allows(reduction)) continue;
      all.push_back({.reduction = reduction, .algorithm = entry.name});
    }
  }
  for (const bool calibrate : {false, true}) {
    for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered})
      all.push_back({.reduction = reduction, .algorithm = kAutoAlgorithm, .calibrate = calibrate});
  }
  const std::vector<std::pair<std::string, std::vector<Index>>> sizes{
      {"one bucket", {0, 1000}},
      {"buckets", {0, 7, 512, 2000, 2001, 3000}},
      {"fewer numbers than ranks", {0, 1, 3}},
  };
  for (const DistOptions& options : all) {
    for (const auto& [name, borders] : sizes) {
      for (const Index ranks_per_node : {0, 1, 2, 3}) {
        const Index replicas = ranks_per_node % 2 == 0 ? 3 : 1;
        const bool measures = options.calibrate && options.algorithm == kAutoAlgorithm;
        if (measures && ranks_per_node % 2 == 1) continue;  // that takes a while
        const Case one{options.algorithm + ", " + name + ", " + std::to_string(ranks_per_node) +
                           " ranks a node, reduction " + std::to_string(static_cast<int>(options.reduction)),
                       options, borders, replicas, ranks_per_node};
        SCOPED_TRACE(one.name);
        visit(one);
      }
    }
  }
}

// Whether a named algorithm cannot run on these nodes.
bool refused(Communicator& comm, const Case& one) {
  if (comm.size() == 1 || one.options.algorithm == kAutoAlgorithm) return false;
  const Nodes nodes = look_at_nodes(comm, one.ranks_per_node);
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (entry.name == one.options.algorithm) return !entry.refusal(nodes).empty();
  }
  return false;
}

TEST(Algorithms, EveryRankGetsTheSumAndTheSameBits) {
  walk([](const Case& one) {
    test::on_ranks([&](Communicator& comm) {
      if (refused(comm, one)) return;
      Exchanging exchanging(comm, one);
      for (Index step = 1; step < 4; ++step) {
        const std::vector<Scalar> sum = exchanging.step(step);
        const std::vector<double> expected = exchanging.expected(step);
        for (std::size_t i = 0; i < sum.size(); ++i)
          ASSERT_NEAR(sum[i], expected[i], 2e-5) << "step " << step << ", number " << i;
        std::vector<Scalar> first = sum;
        comm.broadcast(as_buffer(std::span(first)), 0);
        ASSERT_EQ(first, sum) << "step " << step;
      }
    });
  });
}

TEST(Algorithms, OrderedGivesTheSameBitsWhicheverItIs) {
  walk([](const Case& one) {
    if (one.options.reduction != Reduction::kOrdered) return;
    test::on_ranks([&](Communicator& comm) {
      if (refused(comm, one)) return;
      Exchanging exchanging(comm, one);
      Exchanging messages(comm, one, [](const ExchangeRequest& request) {
        return make_reducer({.comm = request.comm, .plan = request.plan, .options = request.options});
      });
      for (Index step = 1; step < 4; ++step) ASSERT_EQ(exchanging.step(step), messages.step(step));
    });
  });
}

// What calibration may come to: buckets that go different ways at the same time.
std::unique_ptr<Reducer> make_mixture(const ExchangeRequest& request) {
  const auto nodes = look_at_nodes(request.comm, request.ranks_per_node);
  const AlgorithmEntry& in_memory = algorithm_by_rule(nodes);
  AlgorithmChoice all;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(request.options.reduction)) continue;
    if (!entry.in_node_memory || &entry == &in_memory) all.push_back(&entry);
  }
  AlgorithmChoice choice;
  for (std::size_t bucket = 0; bucket < request.plan.buckets.size(); ++bucket)
    choice.push_back(all[(7 - bucket) % all.size()]);
  return make_bucketwise_reducer(request, choice);
}

TEST(Algorithms, BucketsCanGoDifferentWays) {
  for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
    for (const Index ranks_per_node : {0, 2}) {
      test::on_ranks([&](Communicator& comm) {
        if (comm.size() == 1) return;
        const Case one{
            "", {.reduction = reduction}, {0, 100, 200, 1000, 1100, 4000, 4100, 5000}, 3, ranks_per_node};
        Exchanging exchanging(comm, one, make_mixture);
        for (Index step = 0; step < 5; ++step) {
          const std::vector<Scalar> sum = exchanging.step(step);
          const std::vector<double> expected = exchanging.expected(step);
          for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 2e-5) << i;
        }
      });
    }
  }
}

TEST(Algorithms, AMixtureIsNamedByTheBytesOfItsBuckets) {
  if (test::under_mpi()) GTEST_SKIP() << "the number of ranks is given";
  run_thread_ranks(2, [](Communicator& comm) {
    const auto small_by_ring = [](const ExchangeRequest& request) {
      AlgorithmChoice choice;
      for (const Bucket& bucket : request.plan.buckets) {
        const bool small = bucket.range.size() <= 512;
        choice.push_back(&find_entry(algorithm_catalog(), "algorithm", small ? "ring" : "rabenseifner"));
      }
      return make_bucketwise_reducer(request, choice);
    };
    Exchanging exchanging(comm, {"", {}, {0, 256, 768, 1792, 3840}}, small_by_ring);
    EXPECT_EQ(exchanging.reducer().algorithm(), "ring up to 2.0 KiB, rabenseifner up to 8.0 KiB");
  });
}

TEST(Algorithms, AutoDoesNotTakeWhatSuffersWhereBucketsOverlap) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() == 1) return;
    const Case one{"", {.reduction = Reduction::kNative, .calibrate = true}, {0, 512, 2000, 3000}, 1, 1};
    const std::string chosen = Exchanging(comm, one).reducer().algorithm();
    EXPECT_NE(chosen, "");
    EXPECT_EQ(chosen.find("mpi"), std::string::npos) << chosen;
  });
}

TEST(Algorithms, AFailedRankReleasesThoseWhoWaitInSharedMemory) {
  if (test::under_mpi()) GTEST_SKIP() << "there the whole job ends";
  const auto run = [] {
    run_thread_ranks(3, [](Communicator& comm) {
      const Case one{"", {.algorithm = "shared"}, {0, 100}};
      Exchanging exchanging(comm, one);
      if (comm.rank() == 1) throw DataError("gone");
      exchanging.step(0);
    });
  };
  EXPECT_EQ(test::error_text<DataError>(run), "gone");
}

TEST(Algorithms, WhatIsNamedIsWhatRuns) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    for (const AlgorithmEntry& entry : algorithm_catalog()) {
      SCOPED_TRACE(entry.name);
      Case one{"", {.algorithm = entry.name}, {0, 16, 4000}};
      EXPECT_EQ(Exchanging(comm, one).reducer().algorithm(), entry.name);
    }
  });
}

TEST(Algorithms, ByRuleNeighboursShareMemory) {
  EXPECT_EQ(algorithm_by_rule({.count = 1, .largest = 4}).name, "shared");
  EXPECT_EQ(algorithm_by_rule({.count = 2, .largest = 4}).name, "hierarchical");
  EXPECT_EQ(algorithm_by_rule({.count = 4, .largest = 1}).name, "mpi");
  EXPECT_EQ(algorithm_by_rule({.count = 2, .largest = 4, .neighbours = false}).name, "mpi");
}

// Ranks on a node that has no memory to share.
class NoSharedMemory final : public ForwardingCommunicator {
 public:
  explicit NoSharedMemory(Communicator& inner) : ForwardingCommunicator(inner) {}
  explicit NoSharedMemory(std::unique_ptr<Communicator> inner) : ForwardingCommunicator(std::move(inner)) {}

  std::unique_ptr<Communicator> split(Index color, Index order) override {
    return std::make_unique<NoSharedMemory>(inner().split(color, order));
  }
  std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) override {
    return std::make_unique<NoSharedMemory>(inner().split_by_node(ranks_per_node));
  }
  std::unique_ptr<SharedWindow> shared_window(Index) override { throw AgreedError("all gone", kExitComm); }
};

TEST(Algorithms, AutoDoesWithoutSharedMemoryAndSaysSo) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    NoSharedMemory node(comm);
    for (const bool calibrate : {false, true}) {
      Exchanging exchanging(node, {"", {.calibrate = calibrate}, {0, 16, 4000}});
      EXPECT_EQ(exchanging.reducer().algorithm(), "mpi (not through shared memory: all gone)");
      EXPECT_NEAR(exchanging.step(0)[20], exchanging.expected(0)[20], 2e-5);
    }
  });
}

TEST(Algorithms, WithoutCalibrationNodesDecide) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    const auto chosen = [&](Index ranks_per_node) {
      Case one{"", {.calibrate = false}, {0, 16, 4000}};
      one.ranks_per_node = ranks_per_node;
      return Exchanging(comm, one).reducer().algorithm();
    };
    EXPECT_EQ(chosen(0), "shared");
    EXPECT_EQ(chosen(1), "mpi");
    EXPECT_EQ(chosen(2), comm.size() == 2 ? "shared" : "hierarchical");
  });
}

TEST(Algorithms, NodesAreCountedInTheOrderOfTheirRanks) {
  test::on_ranks([](Communicator& comm) {
    for (const Index ranks_per_node : {0, 1, 2, 3})
      EXPECT_EQ(node_sizes(comm, ranks_per_node), full_nodes(comm.size(), ranks_per_node));
  });
}

// An exchange that takes much longer than it has to.
class SlowReducer final : public Reducer {
 public:
  explicit SlowReducer(std::unique_ptr<Reducer> inner) : inner_(std::move(inner)) {}
  void begin_step(std::span<const Index> samples) override { inner_->begin_step(samples); }
  void bucket_ready(const Bucket& bucket, const PartialGrads& sums) override {
    inner_->bucket_ready(bucket, sums);
  }
  std::size_t progress() override { return inner_->progress(); }
  std::span<Scalar> sum() override { return inner_->sum(); }
  std::span<Scalar> finish() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return inner_->finish();
  }

 private:
  std::unique_ptr<Reducer> inner_;
};

TEST(Algorithms, CalibrationChoosesTheFasterOneWhicheverItTriesFirst) {
  test::on_ranks({2, 3}, [](Communicator& comm) {
    const DistOptions options;
    const Plan plan = make_plan(options, Model({.layers = "dense(9)"}, {{20}}).layout(),
                                {.world = comm.size(), .replicas = comm.size()});
    const AlgorithmEntry& fast = algorithm_by_rule({.count = comm.size(), .largest = 1});
    AlgorithmEntry slow = fast;
    slow.make = [&](const ExchangeRequest& request) {
      return std::make_unique<SlowReducer>(fast.make(request));
    };
    const ExchangeRequest request{.comm = comm, .plan = plan, .options = options};
    for (const AlgorithmChoice& both : {AlgorithmChoice{&fast, &slow}, AlgorithmChoice{&slow, &fast}})
      EXPECT_EQ(calibrate(request, both), AlgorithmChoice{&fast});
  });
}

TEST(Algorithms, CalibrationChoosesTheSameOnAllRanksAndKnowsSizes) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    const Case one{"", {}, {0, 16, 300'000}};
    const std::string mine = Exchanging(comm, one).reducer().algorithm();
    EXPECT_FALSE(mine.empty());
    for (const std::string& theirs : gather_texts(comm, mine)) EXPECT_EQ(theirs, mine);
  });
}

TEST(Algorithms, WhatNodesDoNotAllowIsRefusedOnAllRanks) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    for (const std::string name : {"shared", "hierarchical"}) {
      Case one{"", {.algorithm = name}, {0, 100}};
      one.ranks_per_node = 1;
      const std::string error = test::error_text<AgreedError>([&] { Exchanging(comm, one); });
      test::expect_parts(error, {"distribute.algorithm " + name, "use "});
    }
  });
}

// Arenas that more than one strategy uses: whole trainings, local averages too.
TEST(Algorithms, TrainingsAgree) {
  for (const std::string strategy : {"allreduce", "local_sgd"}) {
    Config config = test::tiny_config();
    config.distribute.strategy = strategy;
    set_keys(config,
             "distribute.average_every=2; distribute.average_state=true; distribute.local_after=6 steps; "
             "distribute.bucket_kib=0");
    if (strategy == "allreduce") {  // ranks meet while buckets are under way
      set_keys(
          config,
          "model.layers=dense(9) batch_norm relu dense(7) batch_norm tanh dense(3); model.batch_norm=sync");
    }
    config.data.synthetic.rows = 83;  // the fifth step has 3 samples: some ranks have none
    const test::TinyResult alone = test::train_tiny_alone(config);
    walk([&](const Case& one) {
      if (one.borders.size() > 2) return;  // the model has its own
      SCOPED_TRACE(strategy);
      Config here = config;
      here.distribute.algorithm = one.options.algorithm;
      here.distribute.calibrate = one.options.calibrate;
      here.distribute.reduction = one.options.reduction;
      here.debug.ranks_per_node = one.ranks_per_node;
      test::on_ranks([&](Communicator& comm) {
        if (refused(comm, one)) return;
        const test::TinyResult result = test::train_tiny(comm, here);
        std::vector<Scalar> first = result.weights;
        comm.broadcast(as_buffer(std::span(first)), 0);
        EXPECT_EQ(first, result.weights);
        if (here.distribute.reduction == Reduction::kOrdered) {
          EXPECT_EQ(result.weights, alone.weights);
          return;
        }
        for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], alone.weights[i], 1e-4);
      });
    });
  }
}

}  // namespace
}  // namespace lockstep::algorithms_test
