// One position after another comes to what all positions at once do.
#include "lockstep/nn/next_position.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"
#include "support/seed.h"

namespace lockstep::next_position_test {

constexpr Index kSamples = 2;
constexpr Index kPositions = 140;  // more than a chunk of keys

void expect_same_outputs(const std::string& layers, Index channels) {
  SCOPED_TRACE(layers);
  const Model model({.layers = layers, .init = "xavier"},
                    SequenceShape{.positions = kPositions, .channels = channels}.shape());
  AlignedBuffer<Scalar> weights(model.layout().size);
  initialise({&model.layout(), weights.span()}, test::seed(), 1.0);
  const ModelValues values{.weights = weights.span(), .state = {}};
  RandomStream random({.seed = test::seed(), .a = 1});
  std::vector<Scalar> x(static_cast<std::size_t>(kSamples * kPositions * channels));
  for (Scalar& value : x) value = channels == 1 ? static_cast<Scalar>(random.below(7)) : random.normal();
  Workspace workspace(model, kSamples, ActivationRetention::kForEvaluation);
  const ConstMatrix all = workspace.forward(
      {.values = values, .x = ConstMatrix(x.data(), kSamples, kPositions * channels), .batch = {}});
  const Index outputs = model.output().dims.back();
  NextPosition next(model, kSamples);
  for (int turn = 0; turn < 2; ++turn, next.start_again())
    for (Index position = 0; position < kPositions; ++position) {
      std::vector<Scalar> here;
      for (Index sample = 0; sample < kSamples; ++sample) {
        const auto from = x.begin() + (sample * kPositions + position) * channels;
        here.insert(here.end(), from, from + channels);
      }
      EXPECT_EQ(next.position(), position);
      const ConstMatrix y = next.next(values, ConstMatrix(here.data(), kSamples, channels));
      for (Index i = 0; i < kSamples * outputs; ++i)
        EXPECT_NEAR(y.data()[i], all(i / outputs, position * outputs + i % outputs), 1e-5) << position;
    }
}

TEST(NextPosition, ComesToWhatAllPositionsAtOnceDo) {
  expect_same_outputs(
      "embedding(7, 8) positions(learned) transformer(2, 2, causal=true, dropout=0.5) layer_norm dense(7, "
      "tie=0)",
      1);
  expect_same_outputs(
      "positions(sinusoidal) transformer(1, 4, causal=true, kv_heads=2, window=30, rotary=true, "
      "norm=rms_norm, mlp=swiglu, bias=false) concat(gelu | dense(3))",
      8);
}

TEST(NextPosition, RefusesLayersThatSeePositionsBehindTheirOwn) {
  for (const std::string layer : {"attention(2)", "conv1d(4, 3)", "lstm(4)", "mean_over_time"}) {
    const Model model({.layers = "dense(4) " + layer + " dense(2)"},
                      SequenceShape{.positions = 6, .channels = 3}.shape());
    test::expect_parts(test::error_text<ConfigError>([&] { NextPosition(model, 1); }),
                       {"layer 1", "cannot go on from one position to the next", "causal=true"});
  }
}

}  // namespace lockstep::next_position_test
