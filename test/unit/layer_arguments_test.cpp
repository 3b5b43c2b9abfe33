// What layers refuse, and the shapes that windows give.
#include <variant>

#include "lockstep/base/errors.h"
#include "lockstep/nn/onnx_words.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"

namespace lockstep::layer_arguments_test {

Shape output_of(const std::string& layer, const Shape& input) {
  return Model({.layers = layer + " layer_norm"}, input).output();
}

void expect_refused(const std::string& layer, const Shape& input, const std::vector<std::string>& parts) {
  test::expect_parts(test::error_text<ConfigError>([&] { output_of(layer, input); }), parts);
}

// Keeps the padding that a layer states for ONNX.
struct PaddingOfNode final : OnnxNodes {
  std::string add(const std::string&, const std::vector<std::string>&,
                  const std::vector<OnnxAttribute>& attributes, Index /*output*/) override {
    const auto pads = std::ranges::find(attributes, "pads", &OnnxAttribute::first);
    top_left_bottom_right = std::get<std::vector<Index>>(pads->second);
    return {};
  }
  std::string add_number(double) override { return {}; }
  std::string add_list(const std::vector<Index>&) override { return {}; }
  std::vector<Index> top_left_bottom_right;
};

TEST(LayerArguments, WindowsGiveTheSizesOfPyTorchAndTensorFlow) {
  const Shape image{{28, 30, 3}};
  EXPECT_EQ(output_of("conv2d(8, 5)", image), (Shape{{24, 26, 8}}));
  EXPECT_EQ(output_of("conv2d(8, 5, padding=2)", image), (Shape{{28, 30, 8}}));
  EXPECT_EQ(output_of("conv2d(8, 3, stride=2, padding=1)", image), (Shape{{14, 15, 8}}));
  EXPECT_EQ(output_of("conv2d(8, 3, 2, dilation=2)", image), (Shape{{12, 13, 8}}));
  EXPECT_EQ(output_of("conv2d(8, 4, stride=3, padding=same)", image), (Shape{{10, 10, 8}}));
  EXPECT_EQ(output_of("conv2d(8, 3, padding=same)", {{1, 1, 2}}), (Shape{{1, 1, 8}}));
  EXPECT_EQ(output_of("conv2d(2, 3)", {{28, 28}}), (Shape{{26, 26, 2}}));
  EXPECT_EQ(output_of("maxpool(2)", image), (Shape{{14, 15, 3}}));
  EXPECT_EQ(output_of("maxpool(3, 2)", image), (Shape{{13, 14, 3}}));
  EXPECT_EQ(output_of("avgpool(3, stride=2, padding=same)", image), (Shape{{14, 15, 3}}));
  EXPECT_EQ(output_of("avgpool(2)", {{28, 28}}), (Shape{{14, 14}}));
  EXPECT_EQ(output_of("global_avgpool", image), (Shape{{3}}));
}

Shape sequence(Index positions, Index channels) {
  return SequenceShape{.positions = positions, .channels = channels}.shape();
}

TEST(LayerArguments, WindowsOverTimeGiveTheSizesOfPyTorch) {
  const Shape in = sequence(30, 3);
  EXPECT_EQ(output_of("conv1d(8, 5)", in), sequence(26, 8));
  EXPECT_EQ(output_of("conv1d(8, 5, padding=2)", in), sequence(30, 8));
  EXPECT_EQ(output_of("conv1d(8, 3, 2, dilation=2)", in), sequence(13, 8));
  EXPECT_EQ(output_of("conv1d(8, 4, stride=4, padding=same)", in), sequence(8, 8));
  EXPECT_EQ(output_of("conv1d(8, 40, padding=same)", in), sequence(30, 8));
  EXPECT_EQ(output_of("conv1d(8, 3, dilation=20, padding=causal)", in), sequence(30, 8));
  EXPECT_EQ(output_of("conv1d(8, 3, stride=4, padding=causal)", in), sequence(8, 8));
  EXPECT_EQ(output_of("maxpool1d(4)", in), sequence(7, 3));
  EXPECT_EQ(output_of("avgpool1d(3, 2, padding=1)", in), sequence(15, 3));
  for (const std::string layer : {"last", "mean_over_time", "max_over_time"})
    EXPECT_EQ(output_of(layer, in), (Shape{{3}}));
  const Model model({.layers = "conv1d(9, 5, groups=3)"}, sequence(9, 6));
  EXPECT_EQ(model.layout().params[0].shape, (Shape{{9, 2, 5}}));
}

// What counts of an output is what a sample of that length alone comes to, and nothing of nothing.
TEST(LayerArguments, LengthsFollowTheWindows) {
  const auto lengths = [](const std::string& layer) {
    return Model({.layers = layer + " layer_norm"}, sequence(5, 2)).op(0).lengths_out;
  };
  using List = std::vector<Index>;
  EXPECT_EQ(lengths("conv1d(1, 3)"), (List{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(lengths("conv1d(1, 3, stride=2, padding=1)"), (List{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(lengths("conv1d(1, 4, padding=same)"), (List{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(lengths("conv1d(1, 4, stride=2, padding=same)"), (List{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(lengths("conv1d(1, 2, dilation=3, stride=3, padding=causal)"), (List{0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(lengths("maxpool1d(2)"), (List{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(lengths("avgpool1d(2, padding=1)"), (List{0, 1, 2, 2, 3, 3}));
  EXPECT_EQ(lengths("last"), List());
}

TEST(LayerArguments, LayersOfSequencesAndOfImagesTellTheOthers) {
  for (const std::string layer : {"conv1d(8, 3)", "maxpool1d(2)", "avgpool1d(2)", "last", "mean_over_time"})
    for (const Shape& other : {Shape{{20}}, Shape{{28, 28}}})
      expect_refused(layer, other, {"layer 0", "expected a sequence", "as_sequence", "data.record"});
  for (const std::string layer : {"conv2d(8, 3)", "maxpool(2)", "avgpool(2)", "global_avgpool"})
    expect_refused(layer, sequence(20, 3), {"found a sequence", "conv1d", "maxpool1d", "mean_over_time"});
  expect_refused("conv1d(8, 6)", sequence(5, 2), {"5 positions of 2", "6 positions does not fit into 5"});
  expect_refused("conv2d(8, 3, padding=causal)", {{6, 6}}, {"'padding' must be valid or same or"});
  expect_refused("conv1d(8, 3, padding=caus)", sequence(5, 2), {"valid, same, causal or", "'caus'"});
  expect_refused("maxpool1d(2, padding=2)", sequence(5, 2), {"longer than its padding", "padding=2"});
  expect_refused("conv1d(4, 3, groups=3)", sequence(5, 2), {"3 groups", "2 input", "4 output"});
}

TEST(LayerArguments, PaddingOfSameIsLargerBehind) {
  const Model model({.layers = "conv2d(1, 4, stride=2, padding=same)"}, {{5, 6}});
  PaddingOfNode node;
  model.op(0).layer->add_to(node, {});
  EXPECT_EQ(node.top_left_bottom_right, (std::vector<Index>{1, 1, 2, 1}));
}

TEST(LayerArguments, WindowsThatDoNotFitAreRefused) {
  const Shape image{{6, 5, 4}};
  expect_refused("conv2d(8, 3)", {{20}}, {"layer 0 'conv2d(8, 3)' on 20", "expected an image"});
  expect_refused("maxpool(2)", {{20}}, {"layer 0 'maxpool(2)' on 20", "expected an image"});
  expect_refused("global_avgpool", {{20}}, {"layer 0 'global_avgpool' on 20", "expected an image"});
  expect_refused("conv2d(8, 6)", image, {"on 6x5x4", "6 pixels", "does not fit into 5"});
  expect_refused("conv2d(8, 3, dilation=3)", image, {"3 pixels, 3 apart, does not fit into 6"});
  expect_refused("conv2d(8, 3, dilation=4611686018427387904)", image, {"does not fit"});
  expect_refused("conv2d(8, 3, padding=same, dilation=4611686018427387904)", image, {"too large"});
  expect_refused("maxpool(2, padding=2)", image, {"longer than its padding", "padding=2"});
  expect_refused("maxpool(2, padding=sam)", image,
                 {"'padding' must be valid or same or a whole number of at least 0, found 'sam'"});
  expect_refused("conv2d(8, 3, dilation=0)", image, {"'dilation'", "at least 1, found '0'"});
  expect_refused("conv2d(8, 3, groups=3)", image, {"3 groups", "4 input", "8 output"});
  expect_refused("conv2d(6, 3, groups=depthwise)", image, {"4 groups", "6 output"});
  expect_refused("conv2d(8, 3, groups=all)", image, {"'groups' must be depthwise or a whole number"});
  expect_refused("conv2d(8, 3, init=hee)", image, {"did you mean 'he'"});
}

// One pixel with channels, or pixels with one, are a vector as they are.
TEST(LayerArguments, DenseTakesAnImageThatIsAVector) {
  for (const Shape& vector : {Shape{{1, 1, 8}}, Shape{{2, 4, 1}}, Shape{{2, 4}}, Shape{{8}}}) {
    EXPECT_EQ(output_of("dense(3)", vector), (Shape{{3}})) << to_string(vector);
    EXPECT_EQ(Model({.layers = "dense(3)"}, vector).layout().params[0].shape, (Shape{{3, 8}}));
  }
  for (const Shape& image : {Shape{{2, 2, 2}}, Shape{{1, 4, 2}}, Shape{{4, 1, 2}}})
    expect_refused("dense(3)", image, {"on " + to_string(image), "put flatten before it"});
}

TEST(LayerArguments, RecurrentLayersTakeSequencesAndHaveTheTensorsOfPyTorch) {
  const Shape in = SequenceShape{.positions = 5, .channels = 2}.shape();
  EXPECT_EQ(output_of("lstm(3, bidirectional=true)", in), (SequenceShape{5, 6}.shape()));
  EXPECT_EQ(output_of("gru(3, layers=2, bidirectional=true, last=true)", in), (Shape{{6}}));
  const Model model({.layers = "gru(3, layers=2, bidirectional=true)"}, in);
  std::vector<std::string> names;
  for (const ParamInfo& param : model.layout().params) names.push_back(param.name);
  names.resize(9);
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight_ih_l0", "0.weight_hh_l0", "0.bias_ih_l0", "0.bias_hh_l0",
                                      "0.weight_ih_l0_reverse", "0.weight_hh_l0_reverse",
                                      "0.bias_ih_l0_reverse", "0.bias_hh_l0_reverse", "0.weight_ih_l1"}));
  EXPECT_EQ(model.layout().params[8].shape, (Shape{{9, 6}}));
  EXPECT_EQ(model.op(0).flops, 2 * 5 * 2 * 9 * ((2 + 3) + (6 + 3)));
  expect_refused("lstm(4)", {{6}}, {"layer 0 'lstm(4)' on 6", "put as_sequence(positions) before it"});
  expect_refused("gru(4, layers=0)", in, {"'layers'", "at least 1"});
}

TEST(LayerArguments, PartsOfASampleShareADenseLayer) {
  const Model model({.layers = "dense(3, shared=4)"}, {{2, 4}});
  EXPECT_EQ(model.output(), (Shape{{12}}));
  EXPECT_EQ(model.layout().params[0].shape, (Shape{{3, 2}}));
  EXPECT_EQ(model.op(0).flops, 2 * 4 * 3 * 2);
  EXPECT_TRUE(model.factored_tensors().empty()) << "a sample is several rows of a factor";
  EXPECT_EQ(Model({.layers = "dense(3, shared=1)"}, {{8}}).factored_tensors().size(), 1U);
  expect_refused("dense(3, shared=4)", {{10}}, {"shared=4 does not divide 10 inputs into equal parts"});
  expect_refused("dense(3, shared=0)", {{10}}, {"'shared' must be a whole number of at least 1, found '0'"});
  expect_refused("dense(3, 2)", {{10}}, {"layer 0 'dense(3, 2)'"});
  expect_refused("dense(3, shared=2, split=rows)", {{10}}, {"leave out split"});
}

TEST(LayerArguments, NumbersOutOfRangeAreRefused) {
  expect_refused("slice(3, 2)", {{4}},
                 {"layer 0 'slice(3, 2)' on 4", "2 features from number 3", "4 there are"});
  expect_refused("slice(0, 2)", {{4, 4}}, {"expected a vector"});
  expect_refused("dropout(1)", {{4}}, {"rate must be at least 0 and below 1, found 1"});
  expect_refused("dropout(nan)", {{4}}, {"rate", "found 'nan'"});
  expect_refused("elu(0)", {{4}}, {"alpha must be above 0"});
  expect_refused("layer_norm(0)", {{4}}, {"eps must be above 0"});
  expect_refused("embedding(16777217, 1)", {{4}}, {"rows must be at most 16777216"});
}

TEST(LayerArguments, EmbeddingRefusesWhatIsNoRow) {
  const Model model({.layers = "embedding(5, 2)"}, {{3}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  Workspace workspace(model, 2, ActivationRetention::kForEvaluation);
  const auto run = [&](Scalar value) {
    const std::vector<Scalar> x{0, 4, 1, 2, value, 3};
    workspace.forward(
        {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(x.data(), 2, 3), .batch = {}});
  };
  run(4);
  for (const Scalar bad : {Scalar{-1}, Scalar{5}, Scalar{2.5F}, Scalar{1e30F}, std::nanf("")}) {
    test::expect_parts(test::error_text<DataError>([&] { run(bad); }),
                       {"embedding(5, 2)", "column 1", "expected a whole number from 0 to 4"});
  }
  test::expect_parts(test::error_text<DataError>([&] { run(2.5F); }), {"holds 2.5"});
}

TEST(LayerArguments, ErrorsNameTheLayerWhereverItStands) {
  const Shape image{{8, 8, 2}};
  expect_refused("residual(tanh conv2d(4))", image,
                 {"model.layers: layer 0.body.1 'conv2d(4)': 'size' is missing: write conv2d(4, size)"});
  expect_refused("relu residual(conv2d(4, 3))", image,
                 {"layer 1 'residual': no projection takes 8x8x2 to 6x6x4"});
  expect_refused("concat(tanh)", image, {"layer 0 'concat(tanh)': 1 chain", "expected at least 2"});
  expect_refused("concat(flatten | tanh)", image, {"layer 0 'concat' on 128 and 8x8x2", "side by side"});
  expect_refused("wide_deep(dense(2) | dense(3))", {{4}}, {"layer 0 'wide_deep' on 2 and 3", "cannot add"});
  expect_refused("batch_norm(mode=sink)", image, {"layer 0 'batch_norm(mode=sink)'", "group(G)", "'sink'"});
  expect_refused("leaky_relu(inf)", image, {"'slope' must be a number, found 'inf'"});
  expect_refused("dense(3) dense(4, tie=0)", {{4}},
                 {"layer 1 'dense(4, tie=0)' on 3", "that is 3x4, this needs 4x3"});
  expect_refused("dense(4) dense(4, tie=7)", {{4}}, {"layer 1", "layer '7'", "no earlier layer"});
  expect_refused("dense(4) dense(4, tie=0, init=zero)", {{4}}, {"leave out init"});
  expect_refused("dense(4) dense(4, tie=0, split=rows)", {{4}}, {"layer 1", "leave out split"});
  expect_refused("dense(4, split=columns)", {{4}}, {"'split' must be rows, found 'columns'"});
  const std::string error =
      test::error_text<ConfigError>([] { Model({.layers = {}, .preset = "resnet20"}, {{6}}); });
  test::expect_parts(error, {"model.preset 'resnet20': layer 0 'conv2d", "expected an image"});
  test::expect_parts(
      test::error_text<ConfigError>([] { Model({.layers = {}, .preset = "tcn"}, {{6}}); }),
      {"model.preset 'tcn': layer 0.body.0 'conv1d", "expected a sequence", "as_sequence", "data.record"});
}

TEST(LayerArguments, CompositesNestButNotWithoutEnd) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "residual(";
    return text + "tanh" + std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_EQ(output_of(nested(100), {{4}}), (Shape{{4}}));
  expect_refused(nested(100'000), {{4}}, {"at most 100 composites inside each other"});
  std::string one_by_one;
  for (int i = 0; i < 150; ++i) one_by_one += "residual(tanh) ";
  EXPECT_EQ(output_of(one_by_one, {{4}}), (Shape{{4}}));
  EXPECT_EQ(output_of("batch_norm(mode=group( 2 ))", {{4}}), (Shape{{4}}));
}

}  // namespace lockstep::layer_arguments_test
