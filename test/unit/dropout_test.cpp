// Whom a mask of dropout belongs to. Behind a layer norm of ones the outputs of the model are the mask.
#include "lockstep/nn/params.h"
#include "lockstep/nn/workspace.h"
#include "support/one_step.h"

namespace lockstep::dropout_test {

constexpr Index kRows = 40;
constexpr Index kSize = 500;
constexpr BatchContext kBatch{.training = true, .seed = 1, .step = 5, .replica = 2, .first_row = 0};

using Mask = std::vector<Scalar>;

Mask mask_of(const BatchContext& batch, Index rows = kRows,
             const std::string& layers = "layer_norm dropout(0.4)") {
  const Model model({.layers = layers}, {{kSize}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  std::ranges::fill(part(weights.span(), model.layout().params[1].range), Scalar{1});  // the bias
  AlignedBuffer<Scalar> x(rows * kSize);
  Workspace workspace(model, rows, ActivationRetention::kForEvaluation);
  const ConstMatrix y = workspace.forward({.values = {.weights = weights.span(), .state = {}},
                                           .x = ConstMatrix(x.data(), rows, kSize),
                                           .batch = batch});
  return {y.data(), y.data() + y.size()};
}

TEST(Dropout, KeepsTheMean) {
  const Mask mask = mask_of(kBatch);
  double sum = 0;
  Index dropped = 0;
  for (const Scalar value : mask) {
    EXPECT_TRUE(value == 0 || value == Scalar{1 / 0.6F}) << value;
    sum += static_cast<double>(value);
    dropped += value == 0 ? 1 : 0;
  }
  // Five standard deviations of 20,000 draws.
  const auto count = static_cast<double>(mask.size());
  EXPECT_NEAR(static_cast<double>(dropped) / count, 0.4, 5 * std::sqrt(0.24 / count));
  EXPECT_NEAR(sum / count, 1, 5 * std::sqrt(0.24 / count) / 0.6);
}

TEST(Dropout, MaskBelongsToTheSample) {
  const Mask whole = mask_of(kBatch);
  BatchContext later = kBatch;
  later.first_row = 7;
  EXPECT_TRUE(std::ranges::equal(mask_of(later, 5), std::span(whole).subspan(7 * kSize, 5 * kSize)));
  EXPECT_FALSE(std::ranges::equal(std::span(whole).first(kSize), std::span(whole).subspan(kSize, kSize)));
}

TEST(Dropout, MaskIsAnotherForAnotherStepReplicaSeedOrLayer) {
  const Mask mask = mask_of(kBatch);
  EXPECT_EQ(mask_of(kBatch), mask);
  BatchContext other = kBatch;
  other.step = 6;
  EXPECT_NE(mask_of(other), mask);
  other = kBatch;
  other.replica = 3;
  EXPECT_NE(mask_of(other), mask);
  other = kBatch;
  other.seed = 2;
  EXPECT_NE(mask_of(other), mask);
  EXPECT_NE(mask_of(kBatch, kRows, "layer_norm relu dropout(0.4)"), mask);
}

// A batch that is cut into parts has the masks of the whole: the sums over its samples are the same.
TEST(Dropout, APartOfABatchHasItsMasksOfTheWhole) {
  const auto step = [](Index accumulate) {
    return test::run_one_step_alone({.model = {.layers = "dense(30) relu dropout(0.5) dense(4)"},
                                     .input = {{6}},
                                     .rows = {11, 8},
                                     .accumulate = accumulate});
  };
  const test::OneStepResult whole = step(1);
  for (const Index accumulate : {2, 3, 11}) {
    const test::OneStepResult parts = step(accumulate);
    ASSERT_EQ(parts.outputs.size(), whole.outputs.size());
    for (std::size_t i = 0; i < whole.outputs.size(); ++i)
      EXPECT_NEAR(parts.outputs[i], whole.outputs[i], 1e-5) << accumulate << " parts, output " << i;
    for (std::size_t i = 0; i < whole.gradient.size(); ++i)
      EXPECT_NEAR(parts.gradient[i], whole.gradient[i], 1e-3) << accumulate << " parts, weight " << i;
    EXPECT_NEAR(parts.loss, whole.loss, 1e-3);
  }
}

// The masks of a step follow from its number, its replicas and the run's seed, from a replica's first sample.
TEST(Dropout, AStepHasTheMasksOfItsNumberAndItsReplicas) {
  const test::OneStep step{
      .model = {.layers = "dense(30) relu dropout(0.5) dense(4)"}, .input = {{6}}, .rows = {3, 2}};
  const std::vector<Scalar> outputs = test::run_one_step_alone(step).outputs;
  const Model model(step.model, step.input);
  AlignedBuffer<Scalar> weights(model.layout().size);
  initialise({&model.layout(), weights.span()}, 1, 0.1);
  Workspace workspace(model, 3, ActivationRetention::kForEvaluation);
  Index sample = 0;
  for (Index replica = 0; replica < 2; ++replica) {
    std::vector<Scalar> x;
    for (Index row = 0; row < at(step.rows, replica); ++row) {
      const std::vector<Scalar> one = test::sample(step.input, sample + row);
      x.insert(x.end(), one.begin(), one.end());
    }
    const ConstMatrix y = workspace.forward(
        {.values = {.weights = weights.span(), .state = {}},
         .x = ConstMatrix(x.data(), at(step.rows, replica), 6),
         .batch = {.training = true, .seed = 3, .step = 5, .replica = replica, .first_row = 0}});
    for (Index i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y.data()[i], at(outputs, sample * 4 + i), 1e-5) << replica;
    sample += at(step.rows, replica);
  }
}

TEST(Dropout, DoesNothingInEvaluationOrAtARateOfZero) {
  BatchContext evaluation = kBatch;
  evaluation.training = false;
  const Mask ones(kRows * kSize, Scalar{1});
  EXPECT_EQ(mask_of(evaluation), ones);
  EXPECT_EQ(mask_of(kBatch, kRows, "layer_norm dropout(0)"), ones);
}

// Queries and keys are zeros and values those of an identity, so that outputs are weights. Positions add
// nothing: a model has to have something to learn.
Mask mask_of_attention(const BatchContext& batch, Index rows) {
  constexpr Index kPositions = 40;
  const Model model({.layers = "positions(learned) attend(2, kv_heads=1, dropout=0.4)"},
                    SequenceShape{.positions = kPositions, .channels = 4 * kPositions}.shape());
  std::vector<Scalar> x(static_cast<std::size_t>(rows * kPositions * 4 * kPositions));
  for (Index i = 0; i < rows * kPositions; ++i)
    at(x, i * 4 * kPositions + 3 * kPositions + i % kPositions) = kPositions;
  AlignedBuffer<Scalar> weights(model.layout().size);
  Workspace workspace(model, rows, ActivationRetention::kForEvaluation);
  const ConstMatrix y = workspace.forward({.values = {.weights = weights.span(), .state = {}},
                                           .x = ConstMatrix(x.data(), rows, std::ssize(x) / rows),
                                           .batch = batch});
  return {y.data(), y.data() + y.size()};
}

TEST(Dropout, OfAttentionBelongsToSampleHeadQueryAndKey) {
  const Mask mask = mask_of_attention(kBatch, 5);
  const auto count = static_cast<double>(mask.size());
  double dropped = 0;
  for (const Scalar value : mask) {
    EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.6F) < 1e-5F) << value;
    dropped += value == 0 ? 1 : 0;
  }
  EXPECT_NEAR(dropped / count, 0.4, 5 * std::sqrt(0.24 / count));
  // Neighbours, heads and samples are equal as often as chance has it: 0.4^2 + 0.6^2.
  for (const std::size_t step : {1, 16, 40, 80, 16 * 80, 3200}) {
    double equal = 0;
    for (std::size_t i = step; i < mask.size(); ++i) equal += (mask[i] == 0) == (mask[i - step] == 0) ? 1 : 0;
    EXPECT_NEAR(equal / (count - static_cast<double>(step)), 0.52, 0.03) << step;
  }
  BatchContext later = kBatch;
  later.first_row = 3;
  EXPECT_TRUE(std::ranges::equal(mask_of_attention(later, 2), std::span(mask).subspan(3 * 3200)));
  later.training = false;
  for (const Scalar value : mask_of_attention(later, 1)) EXPECT_NEAR(value, 1, 1e-5);
}

}  // namespace lockstep::dropout_test
