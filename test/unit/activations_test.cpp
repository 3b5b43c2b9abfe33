// What is kept for a block of samples, in models of images so large that a pass takes them a few at a time.
#include "lockstep/nn/workspace.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "support/seed.h"

namespace lockstep::activations_test {

constexpr Index kSamples = 5;
const Shape kImage{{128, 128}};  // eight channels of it: half a MiB, a sample to a block

Model model_of(const std::string& layers) {
  return Model({.layers = layers, .init = "he"}, kImage);
}

struct Kinds {
  std::vector<Index> output, gradient;
};

Kinds kept_by(const std::string& layers, ActivationRetention kept) {
  Kinds kinds;
  for (const RetainedSamples& samples : activation_memory(model_of(layers), kSamples, kept).samples) {
    kinds.output.push_back(samples.output);
    kinds.gradient.push_back(samples.gradient);
  }
  return kinds;
}

using Samples = std::vector<Index>;
constexpr Index kAlone = 1;  // samples of a block here
constexpr Index kNone = 0;

// Ops: conv2d, maxpool (before the relu that followed it in the text), relu, flatten, dense.
const std::string kPooled = "conv2d(8, 3, padding=same) relu maxpool(2) flatten dense(3)";

TEST(RetainedSamples, OnTheWayBackReluNeedsItsOutputAndDenseItsInput) {
  const Kinds kinds = kept_by(kPooled, ActivationRetention::kForTraining);
  EXPECT_EQ(kinds.output, (Samples{kAlone, kSamples, kNone, kSamples, kSamples}));
}

TEST(RetainedSamples, GradientsGoByRunsOfTheWayBack) {
  const Model model = model_of(kPooled);
  const std::vector<OpRun> runs = backward_runs(model);
  ASSERT_EQ(runs.size(), 2U);  // dense has too many weights to go with others
  ASSERT_EQ(runs[0].ops, (Range{0, 4}));
  const Kinds kinds = kept_by(kPooled, ActivationRetention::kForTraining);
  EXPECT_EQ(kinds.gradient, (Samples{kAlone, kAlone, kNone, kSamples, kSamples}));
}

TEST(RetainedSamples, EvaluationKeepsNoGradientAndWhatGoesOnToAnotherRun) {
  const Kinds kinds = kept_by(kPooled, ActivationRetention::kForEvaluation);
  EXPECT_EQ(kinds.output, (Samples{kAlone, kAlone, kNone, kSamples, kSamples}));
  EXPECT_EQ(kinds.gradient, (Samples{kNone, kNone, kNone, kNone, kNone}));
}

TEST(RetainedSamples, ThereIsRoomForNoMoreThanTheBatch) {
  const Model model({.layers = kPooled}, Shape{{28, 28}});  // of which a block has a dozen
  for (const RetainedSamples& samples :
       activation_memory(model, kSamples, ActivationRetention::kForTraining).samples) {
    EXPECT_LE(samples.output, kSamples);
    EXPECT_LE(samples.gradient, kSamples);
  }
}

// Batch norm takes the sums of all samples before it takes the first.
TEST(RetainedSamples, StatisticsNeedTheirWholeInput) {
  const Kinds kinds = kept_by("conv2d(8, 3, padding=same) batch_norm relu maxpool(2) flatten dense(3)",
                              ActivationRetention::kForTraining);
  EXPECT_EQ(kinds.output, (Samples{kSamples, kAlone, kSamples, kNone, kSamples, kSamples}));
  EXPECT_EQ(kinds.gradient[0], kSamples);
  EXPECT_EQ(kinds.gradient[1], kSamples);
}

// What dense puts out takes the memory of conv2d, which nobody reads again; its gradient lies before those of
// which the way back needs three at once.
TEST(ActivationMemory, BytesAreThoseThatARunNeedsAtOnce) {
  constexpr Index kCacheLine = 16;
  const Index image = 8 * kImage.size(), pooled = image / 4;
  const Index outputs = kAlone * image + kSamples * (pooled + pooled);
  const Index gradients = kCacheLine + kSamples * pooled + kAlone * (image + pooled);
  const Index winners = kSamples * pooled;
  EXPECT_EQ(activation_bytes(model_of(kPooled), kSamples, ActivationRetention::kForTraining),
            (outputs + gradients + winners) * Index{sizeof(Scalar)});
}

TEST(ActivationMemory, AChainTakesTurnsInTwoBuffers) {
  constexpr Index kUnits = 256;  // each layer has a run of its own
  const Model chain({.layers = "dense(256) dense(256) dense(256) dense(256) dense(256)"}, Shape{{kUnits}});
  const Index two = 2 * kSamples * kUnits;
  const ActivationMemory training = activation_memory(chain, kSamples, ActivationRetention::kForTraining);
  EXPECT_EQ(training.gradients.size, two);
  EXPECT_EQ(training.outputs.size, 5 * kSamples * kUnits);
  EXPECT_EQ(activation_memory(chain, kSamples, ActivationRetention::kForEvaluation).outputs.size, two);
  EXPECT_EQ(activation_memory(chain, kSamples, ActivationRetention::kAll).gradients.size,
            5 * kSamples * kUnits);
}

// A model with a batch of random numbers.
struct Setting {
  explicit Setting(const std::string& layers)
      : model(model_of(layers)),
        weights(model.layout().size),
        state(model.state_layout().size),
        gradient(model.layout().size),
        x(kSamples * kImage.size()),
        random({.seed = test::seed()}) {
    initialise({&model.layout(), weights.span()}, 1, 1.0);
    initialise({&model.state_layout(), state.span()}, 1, 1.0);
    for (Scalar& value : x.span()) value = random.normal();
  }

  Pass pass(bool training) {
    return {.values = {.weights = weights.span(), .state = state.span()},
            .x = ConstMatrix(x.data(), kSamples, kImage.size()),
            .batch = {.training = training, .seed = 7}};
  }

  void draw(Matrix dy) {
    for (Index i = 0; i < dy.size(); ++i) dy.data()[i] = random.normal();
  }
  Model model;
  AlignedBuffer<Scalar> weights, state, gradient, x;
  RandomStream random;
};

std::vector<Scalar> numbers_of(const ConstMatrix& y, std::span<const Scalar> gradient) {
  std::vector<Scalar> numbers(y.data(), y.data() + y.size());
  numbers.insert(numbers.end(), gradient.begin(), gradient.end());
  return numbers;
}

// What comes out, and the gradient of the weights.
std::vector<Scalar> step(const std::string& layers, ActivationRetention kept) {
  Setting setting(layers);
  const bool training = kept != ActivationRetention::kForEvaluation;
  Workspace workspace(setting.model, kSamples, kept);
  const ConstMatrix y = workspace.forward(setting.pass(training));
  if (!training) return numbers_of(y, {});
  setting.draw(workspace.output_gradient());
  workspace.backward(setting.gradient.span(), Write::kReplace, {});
  return numbers_of(y, setting.gradient.span());
}

constexpr const char* kModels[] = {
    "conv2d(8, 3, padding=same) relu maxpool(2) flatten dense(3)",
    "conv2d(8, 3, padding=same) maxpool(2) dropout(0.5) conv2d(4, 3) avgpool(2) gelu flatten dense(3)",
    "conv2d(8, 3, padding=same) batch_norm relu maxpool(2) conv2d(8, 3) batch_norm relu flatten dense(3)",
    ("conv2d(8, 3, padding=same) residual(conv2d(8, 3, padding=same) relu) avgpool(32) flatten layer_norm "
     "dense(3)"),
    "conv2d(4, 3, padding=same) concat(maxpool(2) | avgpool(2) tanh) global_avgpool dense(3)",
};

TEST(RetainedSamples, ChangesNoBits) {
  for (const std::string layers : kModels)
    EXPECT_EQ(step(layers, ActivationRetention::kForTraining), step(layers, ActivationRetention::kAll))
        << layers;
}

// As replicas do that meet before each batch norm: stretch by stretch, with all sums, here twice its own.
std::vector<Scalar> step_with_sync_points(ActivationRetention kept) {
  Setting setting(kModels[2]);
  const auto twice = [](const std::vector<double>& own) {
    std::vector<double> sums = own;
    for (double& sum : sums) sum *= 2;
    return sums;
  };
  const auto ops = std::ssize(setting.model.ops());
  Workspace workspace(setting.model, kSamples, kept, {1, 5});
  workspace.begin(setting.pass(true));
  for (const Range stretch : {Range{0, 1}, {1, 5}, {5, ops}}) {
    OpSums& sums = workspace.sums(stretch.begin);
    if (stretch.begin > 0) sums.forward = twice(sums.own_forward);
    workspace.forward(stretch);
  }
  setting.draw(workspace.output_gradient());
  workspace.begin_backward(setting.gradient.span(), Write::kReplace);
  for (const Range stretch : {Range{6, ops}, {2, 6}, {0, 2}}) {
    OpSums& sums = workspace.sums(stretch.end - 1);
    if (stretch.end < ops) sums.backward = twice(sums.own_backward);
    workspace.backward(stretch, setting.gradient.span(), Write::kReplace, {});
  }
  return numbers_of(workspace.outputs(), setting.gradient.span());
}

TEST(RetainedSamples, ChangesNoBitsWhereReplicasMeet) {
  const Model model = model_of(kModels[2]);
  ASSERT_NE(model.op(1).layer->statistics(), nullptr);
  ASSERT_NE(model.op(5).layer->statistics(), nullptr);
  EXPECT_EQ(step_with_sync_points(ActivationRetention::kForTraining),
            step_with_sync_points(ActivationRetention::kAll));
}

// What is random or of the batch is not so in evaluation.
TEST(RetainedSamples, EvaluationGivesWhatTrainingDoes) {
  for (const std::string layers : {kModels[0], kModels[3], kModels[4]}) {
    const std::vector<Scalar> both = step(layers, ActivationRetention::kAll);
    const std::vector<Scalar> forward = step(layers, ActivationRetention::kForEvaluation);
    ASSERT_LT(forward.size(), both.size());
    EXPECT_TRUE(std::equal(forward.begin(), forward.end(), both.begin())) << layers;
  }
}

}  // namespace lockstep::activations_test
