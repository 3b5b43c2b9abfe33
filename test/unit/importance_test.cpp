// Importance and partial dependence of a linear model, for which both are known in closed form.
#include "lockstep/train/evaluation/importance.h"

#include "lockstep/base/catalog.h"
#include "lockstep/comm/agree.h"
#include "support/error_text.h"
#include "support/numbered_source.h"
#include "support/thread_ranks.h"

namespace lockstep::test::importance_test {

constexpr Index kRows = 60;
constexpr std::array<double, 4> kWeights = {0.5, 0, -2, 0.25};

double feature(Index id, Index column) {
  return static_cast<double>((id * (7 + 4 * column) + column * column) % 23) / 8;
}

// Records that the model predicts without an error, unless `noise` is added to their targets.
class LinearSource final : public ComputedSource {
 public:
  explicit LinearSource(double noise = 0)
      : ComputedSource({.features = {{4}}, .target_columns = 1, .name = "lines"}, chunks_of(kRows, 7)),
        noise_(noise) {}

 private:
  void compute(Index id, Index row, Matrix& x, Matrix& targets) const override {
    double y = id % 2 == 0 ? noise_ : -noise_;
    for (Index column = 0; column < 4; ++column) {
      x(row, column) = static_cast<Scalar>(feature(id, column));
      y += at(kWeights, column) * feature(id, column);
    }
    targets(row, 0) = static_cast<Scalar>(y);
  }
  double noise_;
};

struct Linear {
  Linear() {
    for (std::size_t i = 0; i < kWeights.size(); ++i) weights.span()[i] = static_cast<Scalar>(kWeights[i]);
  }
  ModelValues values() const { return {.weights = weights.span(), .state = {}}; }
  Model model{{.layers = "dense(1)"}, {{4}}};
  AlignedBuffer<Scalar> weights{model.layout().size};
  std::unique_ptr<Loss> loss = find_entry(loss_catalog(), "loss", "mean_squared_error").make({});
  Normaliser normaliser{{0.0}, {1.0}, {{4}}};
};

Importance importance(Communicator& comm, const std::string& measure, Index repeats, double noise = 0,
                      int threads = 2) {
  Linear linear;
  EvalOptions options;
  options.batch = 8;
  const std::vector<std::string> names{"r2", "mean_absolute_error"};
  const MetricSet metrics(names, linear.loss->form(), 1);
  ThreadTeam team(threads);
  const Measure compared(measure, names, false);
  const std::vector<FeatureColumn> columns = feature_columns("", 4);
  const LinearSource source(noise);
  return permutation_importance({.comm = comm,
                                 .model = linear.model,
                                 .loss = *linear.loss,
                                 .normaliser = linear.normaliser,
                                 .team = team,
                                 .options = options,
                                 .metrics = metrics},
                                source, Split::kTest, linear.values(),
                                {.columns = columns, .measure = compared, .repeats = repeats, .seed = 3});
}

double variance(Index column) {
  double sum = 0, squares = 0;
  for (Index id = 0; id < kRows; ++id) {
    sum += feature(id, column);
    squares += feature(id, column) * feature(id, column);
  }
  return squares / kRows - sum / kRows * (sum / kRows);
}

const ColumnImportance& of(const Importance& importance, const std::string& name) {
  return *std::ranges::find(importance.columns, name, &ColumnImportance::name);
}

// The squared error of a permuted column is w^2 (x - x')^2; over all permutations its mean is 2 w^2 var(x).
// So says scikit-learn's permutation_importance, too.
TEST(Importance, OfALinearModelIsTheVarianceThatAColumnExplains) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Importance found = importance(comm, "loss", 400, 0, 1);
    EXPECT_EQ(found.samples, kRows);
    EXPECT_NEAR(found.baseline, 0, 1e-10);
    for (Index column = 0; column < 4; ++column) {
      const double expected = 2 * at(kWeights, column) * at(kWeights, column) * variance(column);
      EXPECT_NEAR(of(found, std::to_string(column)).mean(), expected, 0.05 * expected) << column;
    }
    EXPECT_EQ(of(found, "1").mean(), 0) << "the model does not look at it";
    EXPECT_EQ(of(found, "1").deviation(), 0);
    EXPECT_NEAR(of(found, "2").deviation(), 0.73, 0.11) << "scikit-learn finds 0.7327 in 400 repeats";
    std::vector<std::string> order;
    for (const ColumnImportance& column : found.columns) order.push_back(column.name);
    EXPECT_EQ(order, (std::vector<std::string>{"2", "0", "3", "1"})) << "the most important first";
  });
}

TEST(Importance, IsTheFallOfAMeasureWhoseLargestValueIsBest) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Importance loss = importance(comm, "loss", 3, 0.5), r2 = importance(comm, "r2", 3, 0.5);
    EXPECT_GT(r2.baseline, 0.9);
    const double total = loss.baseline / (1 - r2.baseline);  // r2 = 1 - loss / total
    for (const ColumnImportance& column : loss.columns)
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(of(r2, column.name).losses[i], column.losses[i] / total, 1e-6) << column.name;
    EXPECT_GT(of(r2, "2").mean(), 1);
  });
}

TEST(Importance, HasTheSpreadOfItsRepeats) {
  const ColumnImportance column{.name = "x", .losses = {1, 2, 6}};
  EXPECT_DOUBLE_EQ(column.mean(), 3);
  EXPECT_DOUBLE_EQ(column.deviation(), std::sqrt(14.0 / 3)) << "numpy.std([1, 2, 6])";
}

TEST(Importance, HasTheSameBitsOnAnyNumberOfRanksAndThreads) {
  std::vector<std::vector<double>> expected;
  run_thread_ranks(1, [&](Communicator& comm) {
    for (const ColumnImportance& column : importance(comm, "mean_absolute_error", 2, 0.5, 1).columns)
      expected.push_back(column.losses);
  });
  EXPECT_NE(expected[0][0], expected[0][1]) << "each repeat has another permutation";
  for (const int ranks : {2, 3, 11}) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const Importance found = importance(comm, "mean_absolute_error", 2, 0.5);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(found.columns[i].losses, expected[i]) << ranks;
    });
  }
}

TEST(Importance, OfAMeasureThatIsNotFiniteIsRefused) {
  run_thread_ranks(2, [](Communicator& comm) {
    expect_parts(error_text<AgreedError>([&] { importance(comm, "loss", 1, 1e30); }),
                 {"loss of 'lines' (test set) is not defined"});
  });
}

TEST(PartialDependence, OfALinearModelIsALine) {
  for (const int ranks : {1, 3}) {
    run_thread_ranks(ranks, [](Communicator& comm) {
      Linear linear;
      ThreadTeam team(2);
      const LinearSource source;
      const std::vector<Scalar> found = read_feature(source, 2, comm);
      ASSERT_EQ(std::ssize(found), kRows);
      double rest = 0;
      for (Index id = 0; id < kRows; ++id) {
        EXPECT_EQ(at(found, id), static_cast<Scalar>(feature(id, 2)));
        rest += 0.5 * feature(id, 0) + 0.25 * feature(id, 3);
      }
      const std::vector<ColumnValue> grid = column_values(feature_columns("", 4)[2], found, 4);
      const auto means = partial_dependence({.comm = comm,
                                             .model = linear.model,
                                             .form = linear.loss->form(),
                                             .normaliser = linear.normaliser,
                                             .team = team,
                                             .batch = 8},
                                            {}, source, linear.values(), {2, 3}, grid);
      ASSERT_EQ(means.size(), grid.size());
      if (comm.rank() > 0) return;
      for (std::size_t i = 0; i < grid.size(); ++i)
        EXPECT_NEAR(means[i].at(0), -2 * static_cast<double>(grid[i].features[0]) + rest / kRows, 1e-5);
    });
  }
}

}  // namespace lockstep::test::importance_test
