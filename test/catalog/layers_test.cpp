// Every layer and composite of the catalogs: its gradients against finite differences, a batch against its
// parts, and what it says about itself.
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep::layers_test {
namespace {

constexpr Index kRows = 5;

// A model text and what it fits; the texts of the catalogs are their examples.
struct Example {
  std::string text;
  Shape input;
  WindowScaling scaling = {};
  bool padded = false;  // records have the lengths below
};

// Lengths for sequences of at least four positions.
std::array<Scalar, kRows> lengths_of(const Shape& input) {
  std::array<Scalar, kRows> lengths{4, 1, 3, 2, 4};
  for (Scalar& length : lengths) length *= static_cast<Scalar>(input.dims[0] / 4);
  return lengths;
}

Shape sequence(Index positions, Index channels) {
  return SequenceShape{.positions = positions, .channels = channels}.shape();
}

Example example_of(const LayerEntry& entry) {
  const bool in_ensemble = entry.name.starts_with("tabm_");
  return {(in_ensemble ? "tabm(3) " : "") + entry.example, entry.example_input};
}

std::vector<Example> catalog_examples() {
  std::vector<Example> examples;
  for (const LayerEntry& entry : layer_catalog()) examples.push_back(example_of(entry));
  for (const CompositeEntry& entry : composite_catalog())
    examples.push_back({entry.example, entry.example_input});
  return examples;
}

// Other arguments than those of the examples, weights that two layers share, outputs that several layers
// take.
std::vector<Example> more_examples() {
  return {{"conv2d(3, 2)", {{4, 5}}},
          {"conv2d(6, 3, padding=1, groups=depthwise, bias=false)", {{4, 4, 3}}},
          {"conv2d(2, 2, dilation=2, padding=same)", {{5, 4, 2}}},
          {"maxpool(2)", {{4, 6, 2}}},
          {"avgpool(3, 1, padding=same)", {{4, 3, 2}}},
          {"residual(conv2d(4, 3, stride=2, padding=1) tanh)", {{5, 4, 2}}},
          {"residual(tanh residual(dense(5) tanh) dense(5))", {{5}}},
          {"concat(concat(relu | tanh) | slice(1, 3) dense(2) | slice(0, 2))", {{4}}},
          {"dense(4) tanh dense(4, tie=1)", {{4}}},
          {"residual(dense(4) tanh dense(4, tie=1.body.0, bias=false))", {{4}}},
          {"embedding(4, 3) tanh dense(4, tie=0)", {{1}}},
          {"dense(4, shared=3)", {{6}}},
          {"dense(3, shared=2) tanh dense(3, tie=1, shared=2, bias=false)", {{6}}},
          {"dense(2, shared=2)", {{6}}, {WindowScaling::Kind::kLast, 2, 3}},
          {"dense(4) tanh dense(6)", {{7}}, {WindowScaling::Kind::kStandard, 2, 3}},
          {"tabm(3) tabm_heads(4)", {{7}}, {WindowScaling::Kind::kStandard, 2, 3}},
          {"dense(40, split=rows)", {{64}}},
          {"residual(dense(64, split=rows, bias=false) tanh) dense(2, split=rows)", {{64}}}};
}

// Models of sequences; each is tried with padding as well, unless its last layer shows it.
std::vector<Example> sequence_examples() {
  return {{"dense(3) tanh", sequence(4, 2)},
          {"batch_norm dense(2)", sequence(4, 3)},
          {"layer_norm relu dropout(0.3)", sequence(4, 3)},
          {"residual(dense(3) batch_norm tanh)", sequence(5, 3)},
          {"concat(dense(2) | tanh) scale", sequence(4, 3)},
          {"dense(3) tanh dense(3, tie=1)", sequence(4, 3)},
          // So much work at a position that padding is left out.
          {"dense(24) tanh", sequence(23, 8)},
          {"dense(24) relu dense(24, tie=1) mean_over_time", sequence(9, 24)},
          {"conv1d(3, 3)", sequence(5, 2)},
          {"conv1d(3, 5, stride=2, padding=same) tanh conv1d(2, 3) last", sequence(43, 2)},
          {"conv1d(4, 2, dilation=2, padding=causal, groups=2) tanh", sequence(5, 2)},
          {"conv1d(3, 4, stride=2, padding=same) tanh conv1d(2, 2)", sequence(6, 2)},
          {"conv1d(3, 2, padding=1, stride=2, bias=false) maxpool1d(2) mean_over_time", sequence(5, 2)},
          {"maxpool1d(3, 2, padding=same) avgpool1d(2, 1, padding=causal)", sequence(6, 3)},
          {"maxpool1d(2) max_over_time", sequence(6, 3)},
          {"avgpool1d(3, 1, padding=1) dense(2)", sequence(5, 2)},
          {"concat(last | mean_over_time | max_over_time)", sequence(5, 3)},
          {"residual(conv1d(4, 3, stride=2, padding=same) batch_norm relu) last", sequence(5, 3)},
          {"conv1d(3, 2) batch_norm tanh max_over_time", sequence(5, 3)},
          {"conv1d(3, 3) silu dropout(0.2) last dense(2)", sequence(5, 3)},
          {"embedding(4, 3) conv1d(2, 2) mean_over_time", sequence(4, 1)},
          {"lstm(3)", sequence(4, 2)},
          {"lstm(2, layers=2, bidirectional=true)", sequence(5, 3)},
          {"lstm(2, layers=3, last=true, bias=false)", sequence(4, 2)},
          {"dense(2) lstm(3, bidirectional=true, last=true) tanh", sequence(4, 2)},
          {"gru(3)", sequence(4, 2)},
          // More steps than the products of the way back take together.
          {"lstm(2, bidirectional=true)", sequence(60, 2)},
          {"gru(2, last=true)", sequence(60, 2)},
          {"gru(2, layers=2, bidirectional=true)", sequence(5, 3)},
          {"gru(2, layers=3, last=true, bias=false)", sequence(4, 2)},
          {"dense(2) gru(3, bidirectional=true, last=true) tanh", sequence(4, 2)},
          {"attention(2)", sequence(5, 4)},
          {"attention(2, causal=true, window=2, bias=false)", sequence(6, 4)},
          {"attention(4, kv_heads=2, window=3, rotary=true)", sequence(6, 8)},
          // More positions than a block of queries or keys has, and more than a chunk.
          {"attend(1, causal=true)", sequence(20, 3)},
          {"attend(1, window=5)", sequence(40, 3)},
          {"attend(1, window=100, dropout=0.2)", sequence(140, 3)},
          {"positions(sinusoidal) rms_norm swiglu", sequence(4, 4)},
          {"transformer(1, 2, causal=true, mlp=swiglu, norm=rms_norm, rotary=true)", sequence(4, 4)}};
}

std::vector<Example> all_examples() {
  std::vector<Example> examples = catalog_examples();
  std::ranges::move(more_examples(), std::back_inserter(examples));
  for (Example& example : sequence_examples()) {
    examples.push_back(example);
    example.padded = true;
    examples.push_back(std::move(example));
  }
  return examples;
}

bool takes_whole_numbers(const Example& example) {
  return example.text.starts_with("embedding");
}

// The layer with others behind it, but for the one that has to be the last.
std::string before_others(const std::string& text) {
  return text.find("tabm_heads") != std::string::npos ? text : text + " flatten dense(2)";
}

// Behind a layer that has a weight for each scalar of the input: its gradients are those of the input.
Example behind_weights(const Example& example) {
  Example behind = example;
  if (!takes_whole_numbers(example)) behind.text = "layer_norm " + example.text;
  return behind;
}

AlignedBuffer<Scalar> random_values(Index size, std::uint64_t stream) {
  RandomStream random({.seed = test::seed(), .a = stream});
  AlignedBuffer<Scalar> values(size);
  for (Scalar& value : values.span()) value = random.normal();
  return values;
}

// A model in training, and a scalar function of its outputs with a known gradient: the sum of the outputs
// times fixed random factors.
struct Fixture {
  // `draw`: of the inputs.
  explicit Fixture(const Example& example, std::uint64_t draw = 0)
      : model({.layers = example.text, .init = "xavier", .window_scaling = example.scaling}, example.input),
        workspace(model, kRows, ActivationRetention::kForTraining),
        x_values(random_values(kRows * model.input().size(), 1 + 10 * draw)),
        factors(random_values(kRows * model.members() * model.output().size(), 2)),
        weights(model.layout().size),
        state(model.state_layout().size),
        gradient(model.layout().size),
        padded(example.padded),
        record_lengths(lengths_of(example.input)) {
    initialise({&model.layout(), weights.span()}, test::seed(), 1.0);
    initialise({&model.state_layout(), state.span()}, test::seed(), 1.0);
    // Biases off zero, and every tensor in play.
    RandomStream random({.seed = test::seed(), .a = 3});
    for (Scalar& weight : weights.span()) weight += Scalar{0.2F} * random.normal();
    if (takes_whole_numbers(example)) {
      for (Scalar& value : x_values.span()) value = static_cast<Scalar>(random.below(4));
    }
    forget_padding();
  }

  ConstMatrix forward(Range rows, bool training = true) {
    const Index size = model.input().size();
    return workspace.forward(
        {.values = {.weights = weights.span(), .state = state.span()},
         .x = ConstMatrix(x_values.data() + rows.begin * size, rows.size(), size),
         .batch = {.training = training,
                   .seed = 7,
                   .step = 3,
                   .first_row = rows.begin,
                   .lengths = padded ? part(std::span<const Scalar>(record_lengths), rows)
                                     : std::span<const Scalar>()}});
  }

  // Nobody sees what stands in the padding of an output.
  void forget_padding() {
    const std::vector<Index>& lengths = model.ops().back().lengths_out;
    const Index size = model.members() * model.output().size();
    for (Index row = 0; padded && !lengths.empty() && row < kRows; ++row) {
      const Index channels = model.output().dims[1];
      const Index counted = at(lengths, static_cast<Index>(at(record_lengths, row))) * channels;
      std::ranges::fill(part(factors.span(), {row * size + counted, (row + 1) * size}), Scalar{0});
    }
  }

  // Leaves numbers where later passes have padding.
  void run_without_padding() {
    const bool kept = std::exchange(padded, false);
    run({0, kRows}, gradient.span(), Write::kReplace);
    padded = kept;
  }

  void run(Range rows, std::span<Scalar> into, Write write) {
    forward(rows);
    Matrix dy = workspace.output_gradient();
    std::copy_n(factors.data() + rows.begin * dy.cols(), dy.size(), dy.data());
    workspace.backward(into, write, {});
  }

  double value() {
    forward({0, kRows});
    const ConstMatrix outputs = workspace.trained_outputs();
    double sum = 0;
    for (Index i = 0; i < outputs.size(); ++i)
      sum += static_cast<double>(outputs.data()[i]) * static_cast<double>(factors.data()[i]);
    return sum;
  }

  bool has_statistics() const {
    return std::ranges::any_of(model.ops(),
                               [](const ModelOp& n) { return n.layer->statistics() != nullptr; });
  }

  Model model;
  Workspace workspace;
  AlignedBuffer<Scalar> x_values;
  AlignedBuffer<Scalar> factors;
  AlignedBuffer<Scalar> weights;
  AlignedBuffer<Scalar> state;
  AlignedBuffer<Scalar> gradient;
  bool padded;
  std::array<Scalar, kRows> record_lengths;
};

// Differences above and below one weight.
std::pair<double, double> differences(Fixture& fixture, Index weight, Scalar step) {
  Scalar& place = fixture.weights.data()[weight];
  const Scalar kept = place;
  const double at = fixture.value();
  place = kept + step;
  const double above = (fixture.value() - at) / static_cast<double>(place - kept);
  place = kept - step;
  const double below = (at - fixture.value()) / static_cast<double>(kept - place);
  place = kept;
  return {above, below};
}

// Compares all gradients; gives how many cannot be, since a step crosses the kink of a piecewise linear
// layer.
Index compare_gradients(Fixture& fixture) {
  // What an earlier pass left is replaced, also where ops share weights or take the same output.
  fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
  fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
  Index kinks = 0;
  for (const ParamInfo& param : fixture.model.layout().params) {
    for (Index i = param.range.begin; i < param.range.end; ++i) {
      auto [above, below] = differences(fixture, i, 2e-3F);
      const double tolerance = 1e-2 * std::max(1.0, std::abs(above));
      const double found = fixture.gradient.data()[i];
      // A smaller step takes a strong curvature away, but no kink and no wrong gradient.
      const bool is_curved =
          std::abs(above - below) > tolerance || std::abs(found - (above + below) / 2) > tolerance;
      if (is_curved) std::tie(above, below) = differences(fixture, i, 5e-4F);
      // What is left of a difference below this moves the middle of both by half of the tolerance at most.
      if (std::abs(above - below) > tolerance) {
        ++kinks;
        continue;
      }
      EXPECT_NEAR(found, (above + below) / 2, tolerance) << param.name << " " << i;
    }
  }
  return kinks;
}

TEST(Layers, GradientsEqualFiniteDifferences) {
  for (const Example& example : all_examples()) {
    SCOPED_TRACE(example.text);
    // Kinks are a matter of the inputs: where too many of a small model meet one, others are drawn.
    Index kinks = 0;
    Index most = 0;
    for (std::uint64_t draw = 0; draw < 4 && (draw == 0 || kinks > most); ++draw) {
      Fixture fixture(behind_weights(example), draw);
      kinks = compare_gradients(fixture);
      most = fixture.model.layout().count() / 5;
    }
    EXPECT_LE(kinks, most);
  }
}

TEST(Layers, NothingSeesThePadding) {
  for (const Example& example : all_examples()) {
    if (!example.padded) continue;
    SCOPED_TRACE(example.text);
    Fixture fixture(behind_weights(example));
    const double value = fixture.value();
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    const std::vector<Scalar> gradient(fixture.gradient.span().begin(), fixture.gradient.span().end());
    const Index size = example.input.size();
    for (Index row = 0; row < kRows; ++row) {
      const Index counted = static_cast<Index>(at(fixture.record_lengths, row)) * example.input.dims[1];
      const Scalar other = takes_whole_numbers(example) ? 3 : 7;
      for (Index i = row * size + counted; i < (row + 1) * size; ++i) fixture.x_values.data()[i] = other;
    }
    EXPECT_EQ(fixture.value(), value);
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    EXPECT_TRUE(std::ranges::equal(fixture.gradient.span(), gradient));
  }
}

// Compares the outputs for one sample with those of a sequence that is as long as what counts of it, and adds
// the gradient for that. One too short for a window has no part in the gradient.
void add_alone(const Example& example, Index row, Fixture& padded, AlignedBuffer<Scalar>& gradient) try {
  const Index length = static_cast<Index>(at(padded.record_lengths, row));
  Example alone = example;
  alone.padded = false;
  alone.input = sequence(length, example.input.dims[1]);
  Fixture fixture(behind_weights(alone));
  std::ranges::copy(padded.weights.span(), fixture.weights.data());
  std::copy_n(padded.x_values.data() + row * example.input.size(), alone.input.size(),
              fixture.x_values.data());
  const Index size = fixture.model.output().size();
  std::copy_n(padded.factors.data() + row * padded.model.output().size(), size, fixture.factors.data());
  if (padded.model.output().sequence) {
    EXPECT_EQ(at(padded.model.ops().back().lengths_out, length), fixture.model.output().dims[0]);
  }
  fixture.run({0, 1}, gradient.span(), Write::kAdd);
  const ConstMatrix expected = fixture.forward({0, 1});
  const ConstMatrix outputs = padded.forward({0, kRows});
  for (Index i = 0; i < size; ++i) EXPECT_NEAR(outputs(row, i), expected(0, i), 1e-6) << row;
} catch (const ConfigError&) {
  const Index size = padded.model.output().size();
  std::fill_n(padded.factors.data() + row * size, size, Scalar{0});
}

TEST(Layers, ASampleWithPaddingComesToWhatItDoesWithout) {
  for (const Example& example : all_examples()) {
    const bool takes_others = example.text.find("batch_norm") != std::string::npos;
    if (!example.padded || takes_others || example.text.find("dropout") != std::string::npos) continue;
    SCOPED_TRACE(example.text);
    Fixture padded(behind_weights(example));
    padded.run_without_padding();
    AlignedBuffer<Scalar> sum(padded.gradient.size());
    for (Index row = 0; row < kRows; ++row) add_alone(example, row, padded, sum);
    padded.run({0, kRows}, padded.gradient.span(), Write::kReplace);
    for (Index i = 0; i < sum.size(); ++i)
      EXPECT_NEAR(padded.gradient.data()[i], sum.data()[i], 1e-5 * std::max(1.0F, std::abs(sum.data()[i])));
  }
}

// Where no position counts at all, in no sample, there is still no NaN.
TEST(Layers, SequencesWithoutPositionsComeToNothing) {
  for (const std::string layers :
       {"conv1d(3, 6) batch_norm relu last", "conv1d(3, 6) maxpool1d(2, padding=1) mean_over_time",
        "conv1d(12, 6) dense(40) mean_over_time",
        "conv1d(3, 6) conv1d(2, 2, padding=same) layer_norm avgpool1d(2) max_over_time"}) {
    SCOPED_TRACE(layers);
    Fixture fixture({"dense(2) " + layers, sequence(8, 2), {}, true});
    fixture.record_lengths = {4, 1, 3, 2, 4};
    fixture.run_without_padding();
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    EXPECT_FALSE(fixture.workspace.first_bad_op().has_value());
    EXPECT_EQ(fixture.value(), 0);
    EXPECT_TRUE(std::ranges::all_of(fixture.gradient.span(), [](Scalar g) { return g == 0; }));
  }
}

TEST(Layers, ABatchIsTheSumOfItsParts) {
  for (const Example& example : all_examples()) {
    SCOPED_TRACE(example.text);
    Fixture fixture(behind_weights(example));
    if (fixture.has_statistics()) continue;
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    AlignedBuffer<Scalar> parts(fixture.gradient.size());
    fixture.run({0, 2}, parts.span(), Write::kReplace);
    fixture.run({2, kRows}, parts.span(), Write::kAdd);
    for (Index i = 0; i < parts.size(); ++i) {
      const double whole = fixture.gradient.data()[i];
      EXPECT_NEAR(parts.data()[i], whole, 1e-5 * std::max(1.0, std::abs(whole)));
    }
  }
}

TEST(Layers, NothingThatIsNotANumberIsHidden) {
  for (const Example& example : catalog_examples()) {
    SCOPED_TRACE(example.text);
    Fixture fixture({before_others(example.text), example.input});
    // In the middle, where slices and windows look.
    fixture.x_values.data()[example.input.size() / 2] = std::nanf("");
    for (const bool training : {true, false}) {
      if (takes_whole_numbers(example)) {
        EXPECT_THROW(fixture.forward({0, kRows}, training), DataError);
        continue;
      }
      EXPECT_TRUE(std::isnan(fixture.forward({0, kRows}, training)(0, 0)));
      const std::optional<Index> bad = fixture.workspace.first_bad_op();
      ASSERT_TRUE(bad.has_value());
      EXPECT_TRUE(fixture.model.op(*bad).path.starts_with("0")) << fixture.model.op(*bad).path;
    }
  }
}

template <class Entry>
void expect_described(const Entry& entry) {
  SCOPED_TRACE(entry.name);
  EXPECT_FALSE(entry.help.empty());
  EXPECT_TRUE(entry.signature.starts_with(entry.name));
  EXPECT_TRUE(entry.example.starts_with(entry.name));
}

TEST(Layers, EntriesDescribeThemselves) {
  for (const LayerEntry& entry : layer_catalog()) expect_described(entry);
  for (const CompositeEntry& entry : composite_catalog()) expect_described(entry);
}

// Weight decay pulls the factors of what comes in ("weight", "weight_hh_l0"): no bias, and no scale of a
// normalisation, which starts as 1.
TEST(Layers, OnlyWeightsDecay) {
  for (const Example& example : catalog_examples()) {
    const Model model({.layers = before_others(example.text)}, example.input);
    for (const ParamInfo& param : model.layout().params) {
      const bool weighs =
          param.name.find("weight") != std::string::npos && param.initialiser != Initialiser::kOne;
      EXPECT_EQ(param.decays, weighs) << example.text << ": " << param.name;
    }
  }
}

// Uniform between +-1 / sqrt(units), biases too.
TEST(Layers, RecurrentOnesStartAsInPyTorch) {
  for (const std::string layer : {"lstm(25)", "gru(25)"}) {
    const Model model({.layers = layer, .init = "zero"}, sequence(2, 9));
    AlignedBuffer<Scalar> weights(model.layout().size);
    initialise({&model.layout(), weights.span()}, test::seed(), 1.0);
    for (const ParamInfo& param : model.layout().params) {
      const auto [least, most] = std::ranges::minmax(part(weights.span(), param.range));
      EXPECT_NEAR(least, -0.2, 0.05) << param.name;
      EXPECT_NEAR(most, 0.2, 0.05) << param.name;
      EXPECT_TRUE(least >= -0.2F && most <= 0.2F) << param.name;
    }
  }
}

TEST(Layers, AreNamedAsInTheCatalog) {
  for (const LayerEntry& entry : layer_catalog()) {
    SCOPED_TRACE(entry.name);
    const Example example = example_of(entry);
    const Model model({.layers = before_others(example.text)}, example.input);
    EXPECT_TRUE(std::ranges::any_of(model.ops(), [&](const ModelOp& op) { return op.name() == entry.name; }));
  }
}

}  // namespace
}  // namespace lockstep::layers_test
