// Metrics on several ranks: pairs are compared whoever holds them, and each value has the same bits on any
// number of ranks and threads.
#include "lockstep/train/evaluation/metric.h"
#include "support/ranks.h"
#include "support/seed.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::metrics_on_ranks_test {
namespace {

struct Labelled {
  Scalar score;
  bool positive;
  Scalar weight;
};

std::vector<Labelled> random_scores(std::size_t count) {
  std::mt19937_64 random(test::seed());
  std::vector<Labelled> all(count);
  for (Labelled& each : all) {
    each = {.score = static_cast<Scalar>(random() % 16),  // many are equal
            .positive = random() % 3 == 0,
            .weight = static_cast<Scalar>(random() % 1000) / Scalar{300}};
  }
  return all;
}

Index twice_above(const std::vector<Labelled>& all) {
  Index twice = 0;
  for (const Labelled& a : all) {
    for (const Labelled& b : all) {
      if (!a.positive || b.positive) continue;
      twice += a.score > b.score ? 2 : a.score == b.score ? 1 : 0;
    }
  }
  return twice;
}

TEST(RankPairs, ComparesEachPositiveWithEachNegativeOfAnyRank) {
  for (const std::size_t count : {0U, 1U, 2U, 300U}) {
    const std::vector<Labelled> all = random_scores(count);
    test::on_ranks([&](Communicator& comm) {
      Scores mine;
      for (std::size_t i = 0; i < all.size(); ++i) {
        // Uneven: of eight ranks the first holds none, and the last half of all.
        const int owner = static_cast<int>(std::min<std::size_t>(1 + i % 8, 4)) % comm.size();
        if (owner != comm.rank()) continue;
        (all[i].positive ? mine.positives : mine.negatives).push_back(all[i].score);
      }
      const RankedPairs ranked = rank_pairs(comm, mine);
      EXPECT_EQ(static_cast<Index>(ranked.positives), std::ranges::count(all, true, &Labelled::positive));
      EXPECT_EQ(static_cast<Index>(ranked.negatives), std::ranges::count(all, false, &Labelled::positive));
      EXPECT_EQ(static_cast<Index>(ranked.twice_above), twice_above(all));
    });
  }
}

TEST(RankPairs, WithWeightsHaveTheSameBitsWhoeverHoldsThem) {
  for (const std::size_t count : {0U, 1U, 2U, 300U}) {
    const std::vector<Labelled> all = random_scores(count);
    double positives = 0;
    double negatives = 0;
    double twice = 0;
    for (const Labelled& a : all) {
      (a.positive ? positives : negatives) += double{a.weight};
      for (const Labelled& b : all) {
        if (!a.positive || b.positive) continue;
        twice += double{a.weight} * double{b.weight} * (a.score > b.score ? 2 : a.score == b.score ? 1 : 0);
      }
    }
    const auto rank = [&](Communicator& comm) {
      Scores mine;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (static_cast<int>(i * 7 % 11) % comm.size() != comm.rank()) continue;
        (all[i].positive ? mine.positives : mine.negatives).push_back(all[i].score);
        (all[i].positive ? mine.positive_weights : mine.negative_weights).push_back(all[i].weight);
      }
      return rank_weighted_pairs(comm, mine);
    };
    RankedPairs alone;
    run_thread_ranks(1, [&](Communicator& comm) { alone = rank(comm); });
    EXPECT_NEAR(alone.positives, positives, 1e-12 * positives);
    EXPECT_NEAR(alone.negatives, negatives, 1e-12 * negatives);
    EXPECT_NEAR(alone.twice_above, twice, 1e-12 * twice);
    test::on_ranks([&](Communicator& comm) {
      const RankedPairs ranked = rank(comm);
      EXPECT_EQ(ranked.positives, alone.positives);
      EXPECT_EQ(ranked.negatives, alone.negatives);
      EXPECT_EQ(ranked.twice_above, alone.twice_above);
    });
  }
}

struct Case {
  std::string loss;
  std::string layers;
  Index classes;
  std::vector<std::string> metrics;
  std::string weights = "";
};

TEST(Metrics, HaveTheSameBitsOnAnyNumberOfRanks) {
  const Case cases[] = {
      {"softmax_cross_entropy", "dense(9) relu dense(3)", 3, {"auc", "log_loss", "precision", "recall"}},
      {"softmax_cross_entropy", "dense(9) relu dense(2)", 2, {}},
      {"binary_cross_entropy", "dense(9) relu dense(1)", 2, {}},
      {"mean_squared_error", "dense(9) relu dense(1)", 0, {}},
      {"softmax_cross_entropy",
       "dense(9) relu dense(3)",
       3,
       {"auc", "log_loss", "precision", "recall"},
       "some"},
      {"binary_cross_entropy", "dense(9) relu dense(1)", 2, {}, "some"},
      {"mean_squared_error", "dense(9) relu dense(1)", 0, {}, "some"},
      {"softmax_cross_entropy",
       "dense(9) relu dense(3)",
       3,
       {"average_precision", "brier", "ece", "f1", "mcc", "balanced_accuracy"},
       "some"},
      {"binary_cross_entropy", "dense(9) relu dense(1)", 2, {"mcc", "average_precision", "ece"}},
      {"mean_squared_error", "dense(9) relu dense(1)", 0, {"spearman", "root_mean_squared_error"}, "some"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.loss + " " + each.layers);
    Config config = test::tiny_config("train.epochs=0; train.steps=3");
    config.train.replicas = 2 * test::kMaxThreadRanks;  // for two threads on each rank
    config.loss.loss = each.loss;
    config.model.layers = each.layers;
    config.data.synthetic.classes = each.classes;
    config.data.table.weight = each.weights;
    config.eval.metrics = each.metrics;
    const EvalMetrics alone = *test::train_tiny_alone(config).training.evaluation();
    EXPECT_FALSE(alone.others.empty());
    for (const MetricValue& other : alone.others) EXPECT_TRUE(other.value) << other.name;
    for (const Index threads : {1, 2}) {
      config.train.threads = threads;
      test::on_ranks([&](Communicator& comm) {
        const EvalMetrics metrics = *test::train_tiny(comm, config).training.evaluation();
        ASSERT_EQ(metrics.others.size(), alone.others.size());
        EXPECT_EQ(metrics.confusion, alone.confusion);
        ASSERT_EQ(metrics.reliability.size(), alone.reliability.size());
        for (std::size_t i = 0; i < alone.reliability.size(); ++i) {
          EXPECT_EQ(metrics.reliability[i].count, alone.reliability[i].count);
          EXPECT_EQ(metrics.reliability[i].predicted, alone.reliability[i].predicted);
          EXPECT_EQ(metrics.reliability[i].observed, alone.reliability[i].observed);
        }
        for (std::size_t i = 0; i < alone.others.size(); ++i) {
          EXPECT_EQ(metrics.others[i].name, alone.others[i].name);
          EXPECT_EQ(metrics.others[i].value, alone.others[i].value) << alone.others[i].name;
        }
      });
    }
  }
}

}  // namespace
}  // namespace lockstep::metrics_on_ranks_test
