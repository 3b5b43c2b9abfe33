// Losses with missing targets, with soft labels and with class weights, against PyTorch; their gradients by
// differences; and what counts how often.
#include "lockstep/base/catalog.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/nn/loss.h"
#include "support/config_text.h"
#include "support/torch_references.h"

namespace lockstep::target_losses_test {

constexpr Scalar kMissing = std::numeric_limits<Scalar>::quiet_NaN();

std::vector<Scalar> read_numbers(const nlohmann::json& list) {
  std::vector<Scalar> numbers;
  for (const nlohmann::json& number : list)
    numbers.push_back(number.is_null() ? kMissing : number.get<Scalar>());
  return numbers;
}

// A batch, and how its rows are weighed.
struct Batch {
  explicit Batch(const nlohmann::json& reference)
      : rows(reference.at("rows")),
        outputs(read_numbers(reference.at("outputs"))),
        labels(read_numbers(reference.at("targets"))),
        gradient(outputs.size(), 99) {
    const LossOptions options = test::train_config(reference.at("options")).loss;
    loss = find_entry(loss_catalog(), "loss", reference.at("loss").get<std::string>()).make(options);
    class_weights = reference.value("class_weights", class_weights);
    weights = reference.value(
        "weights", std::vector<Scalar>(class_weights.empty() ? 0 : static_cast<std::size_t>(rows)));
    present.resize(static_cast<std::size_t>(rows));
  }

  // The mean by weights; `gradient` becomes its derivative.
  double evaluate() {
    const Index columns = std::ssize(outputs) / rows;
    const DatasetInfo info{.features = {}, .target_columns = std::ssize(labels) / rows, .name = ""};
    Matrix targets = as_matrix(std::span(labels), rows, info.target_columns);
    const bool masks = loss->takes_missing_targets();
    weigh({.of_class = class_weights, .masks = masks}, info, targets, weights, present);
    const SampleWeights all{.values = weights,
                            .present = masks ? std::span<const Scalar>(present) : std::span<const Scalar>(),
                            .targets = info.target_columns};
    Matrix slopes = as_matrix(std::span(gradient), rows, columns);
    const double sum = evaluate_weighted(
        *loss, as_matrix(std::span<const Scalar>(outputs), rows, columns),
        as_matrix(std::span<const Scalar>(labels), rows, info.target_columns), all, &slopes);
    for (Scalar& slope : gradient) slope /= static_cast<Scalar>(all.sum(rows));
    return sum / all.sum(rows);
  }
  Index rows;
  std::vector<Scalar> outputs, labels, gradient;
  std::unique_ptr<Loss> loss;
  std::vector<Scalar> class_weights, weights, present;
};

TEST(TargetLosses, EqualPyTorch) {
  for (const char* section : {"masked", "soft", "class_weights"})
    for (const nlohmann::json& reference : test::torch_references(section, "target_references.json")) {
      SCOPED_TRACE(std::string(section) + " " + reference.at("loss").get<std::string>());
      Batch batch(reference);
      const double expected = reference.at("value");
      EXPECT_NEAR(batch.evaluate(), expected, 1e-5 * expected);
      test::expect_close(batch.gradient, reference.at("gradient"), 1e-7);
    }
}

TEST(TargetLosses, HaveTheGradientThatDifferencesShow) {
  constexpr Scalar kStep = 1.F / 128;
  for (const char* section : {"masked", "soft"})
    for (const nlohmann::json& reference : test::torch_references(section, "target_references.json")) {
      Batch batch(reference);
      batch.evaluate();
      const std::vector<Scalar> gradient = batch.gradient;
      for (std::size_t i = 0; i < 8; ++i) {
        const Scalar middle = batch.outputs[i];
        batch.outputs[i] = middle + kStep;
        const double above = batch.evaluate();
        batch.outputs[i] = middle - kStep;
        const double below = batch.evaluate();
        batch.outputs[i] = middle;
        const double derivative = (above - below) / static_cast<double>(2 * kStep);
        EXPECT_NEAR(gradient[i], derivative, 1e-3 * std::abs(derivative) + kStep / 4) << section << i;
      }
    }
}

TEST(TargetLosses, OneHotRowsGiveTheBitsOfClassNumbers) {
  const auto loss = find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({});
  const std::vector<Scalar> outputs{0.3F, -1.7F, 2.1F, 5, 4.9F, -3}, numbers{2, 1};
  const std::vector<Scalar> rows{0, 0, 1, 0, 1, 0};
  std::vector<Scalar> slopes(6), soft_slopes(6);
  Matrix gradient = as_matrix(std::span(slopes), 2, 3);
  Matrix soft_gradient = as_matrix(std::span(soft_slopes), 2, 3);
  const ConstMatrix x = as_matrix(std::span<const Scalar>(outputs), 2, 3);
  EXPECT_EQ(loss->evaluate(x, as_matrix(std::span<const Scalar>(numbers), 2, 1), &gradient),
            loss->evaluate(x, as_matrix(std::span<const Scalar>(rows), 2, 3), &soft_gradient));
  EXPECT_EQ(slopes, soft_slopes);
}

// A run must not go on as if nothing had happened, only because the bad output has no target.
TEST(TargetLosses, AnOutputThatIsNotFiniteShowsBesideAMissingTarget) {
  for (const LossEntry& entry : loss_catalog()) {
    const auto loss = entry.make({});
    if (!loss->takes_missing_targets()) continue;
    const std::vector<Scalar> targets{kMissing, 1};
    std::vector<Scalar> outputs{0.5F, 0.5F};
    const auto value = [&] {
      return loss->evaluate(as_matrix(std::span<const Scalar>(outputs), 1, 2),
                            as_matrix(std::span<const Scalar>(targets), 1, 2), nullptr);
    };
    EXPECT_TRUE(std::isfinite(value())) << entry.name;
    outputs[0] = std::numeric_limits<Scalar>::infinity();
    EXPECT_FALSE(std::isfinite(value())) << entry.name;
  }
}

TEST(Weighing, MultipliesWeightsOfRecordsAndClassesAndCountsTargets) {
  const DatasetInfo info{.features = {}, .target_columns = 1, .weighted = true, .name = ""};
  std::vector<Scalar> labels{0, 2, 1, 0.5F, 1, 3};  // class and weight
  std::vector<Scalar> weights(3);
  Matrix rows = as_matrix(std::span(labels), 3, 2);
  const std::vector<Scalar> of_class{10, 100};
  weigh({.of_class = of_class}, info, rows, weights, {});
  EXPECT_EQ(weights, (std::vector<Scalar>{20, 50, 300}));
  EXPECT_EQ(std::vector<Scalar>(labels.begin(), labels.begin() + 3), (std::vector<Scalar>{0, 1, 1}));
  const DatasetInfo many{.features = {}, .target_columns = 3, .name = ""};
  std::vector<Scalar> targets{1, kMissing, 2, kMissing, kMissing, 3}, present(2);
  Matrix both = as_matrix(std::span(targets), 2, 3);
  weigh({.masks = true}, many, both, {}, present);
  EXPECT_EQ(present, (std::vector<Scalar>{2, 1}));
  EXPECT_EQ((SampleWeights{.values = {}, .present = present, .targets = 3}.sum(2)), 1.0);
  const std::vector<Scalar> twice{2, 1};
  EXPECT_EQ((SampleWeights{.values = twice, .present = present, .targets = 3}.sum(2)), 5.0 / 3);
}

}  // namespace lockstep::target_losses_test
