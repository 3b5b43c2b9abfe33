// ONNX files, read back with the classes of the format, and computed by the definitions of its operations.
// That runtimes take them is tested end to end.
#include <onnx/onnx_pb.h>

#include "catalog/exported_onnx.h"
#include "catalog/onnx_evaluator.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"
#include "support/exportable_model.h"

namespace lockstep::onnx_test {
namespace {

using namespace test;
using Words = std::vector<std::string>;

onnx::GraphProto exported_graph(const ModelToExport& exported) {
  const onnx::ModelProto file = export_onnx(exported);
  EXPECT_EQ(file.ir_version(), 8);
  EXPECT_EQ(file.opset_import_size(), 1);
  EXPECT_EQ(file.opset_import(0).version(), 13);
  return file.graph();
}

onnx::GraphProto exported_graph(const std::string& layers, const Shape& input,
                                TargetKind targets = TargetKind::kClass) {
  ExportableModel exportable(layers, input);
  return exported_graph(exportable.to_export(targets));
}

Words operations(const onnx::GraphProto& graph) {
  Words words;
  for (const onnx::NodeProto& node : graph.node()) words.push_back(node.op_type());
  return words;
}

// "outputs[N,3]"
template <class Values>
Words signatures(const Values& values) {
  Words words;
  for (const onnx::ValueInfoProto& value : values) {
    const onnx::TypeProto_Tensor& type = value.type().tensor_type();
    EXPECT_EQ(type.elem_type(), onnx::TensorProto::FLOAT);
    std::string dims = type.shape().dim(0).dim_param();
    for (int i = 1; i < type.shape().dim_size(); ++i)
      dims += fmt::format(",{}", type.shape().dim(i).dim_value());
    words.push_back(fmt::format("{}[{}]", value.name(), dims));
  }
  return words;
}

const onnx::TensorProto* find_tensor(const onnx::GraphProto& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.initializer(), name, &onnx::TensorProto::name);
  return found == graph.initializer().end() ? nullptr : &*found;
}

void expect_tensor(const onnx::GraphProto& graph, const std::string& name, const Shape& shape,
                   std::span<const Scalar> values) {
  const onnx::TensorProto* tensor = find_tensor(graph, name);
  ASSERT_NE(tensor, nullptr) << name;
  EXPECT_EQ(tensor->data_type(), onnx::TensorProto::FLOAT);
  EXPECT_EQ(std::vector<Index>(tensor->dims().begin(), tensor->dims().end()), shape.dims) << name;
  ASSERT_EQ(tensor->raw_data().size(), values.size_bytes()) << name;
  EXPECT_EQ(std::memcmp(tensor->raw_data().data(), values.data(), values.size_bytes()), 0) << name;
}

// Each node takes what is there before it; all names differ; all weights are used.
void expect_sound(const onnx::GraphProto& graph) {
  std::set<std::string> known{""};  // an input that is left out
  for (const onnx::ValueInfoProto& input : graph.input()) known.insert(input.name());
  std::set<std::string> unused;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
    unused.insert(tensor.name());
  }
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      EXPECT_TRUE(known.contains(input)) << node.name() << " takes " << input;
      unused.erase(input);
    }
    for (const std::string& output : node.output())
      EXPECT_TRUE(output.empty() || known.insert(output).second) << output;
  }
  EXPECT_TRUE(unused.empty()) << *unused.begin();
  for (const onnx::ValueInfoProto& output : graph.output()) EXPECT_TRUE(known.contains(output.name()));
}

TEST(Onnx, HoldsTheWayFromRecordsToProbabilities) {
  const auto graph = exported_graph("dense(5) batch_norm relu dense(3)", {{2, 3}});
  EXPECT_EQ(operations(graph), (Words{"Unsqueeze", "Flatten", "Gemm", "BatchNormalization", "Relu", "Gemm",
                                      "Identity", "Softmax"}));
  EXPECT_EQ(signatures(graph.input()), (Words{"input[N,2,3]"}));
  EXPECT_EQ(signatures(graph.output()), (Words{"outputs[N,3]", "probabilities[N,3]"}));
  expect_sound(graph);
}

TEST(Onnx, DividesTheOutputsOfACalibratedModel) {
  ExportableModel exportable("dense(3)", {{2}});
  ModelToExport exported = exportable.to_export();
  exported.temperature = 2.5F;
  const auto graph = exported_graph(exported);
  EXPECT_EQ(operations(graph), (Words{"Gemm", "Div", "Identity", "Softmax"}));
  expect_sound(graph);
}

TEST(Onnx, HoldsTheWeightsAndTheRunningMomentsUnderTheirNames) {
  ExportableModel exportable("conv2d(3, 2) batch_norm flatten layer_norm dense(2)", {{3, 4, 2}});
  const auto graph = exported_graph(exportable.to_export());
  for (const ParamInfo& param : exportable.model.stored_layout().params)
    expect_tensor(graph, param.name, param.shape, part(exportable.store().values, param.range));
  expect_sound(graph);
}

// The layer with others behind it, but for the one that has to be the last, and with the layer before it that
// it needs.
std::string among_others(const std::string& text) {
  const std::string before = text.starts_with("tabm_") ? "tabm(3) " : "";
  return before + text + (text.starts_with("tabm_heads") ? "" : " flatten dense(2)");
}

TEST(Onnx, HasWordsForEveryLayerAndEveryComposite) {
  const auto check = [](const std::string& example, const Shape& input) {
    SCOPED_TRACE(example);
    ExportableModel exportable(among_others(example), input);
    expect_sound(exported_graph(exportable.to_export()));
  };
  for (const LayerEntry& entry : layer_catalog()) check(entry.example, entry.example_input);
  for (const CompositeEntry& entry : composite_catalog()) check(entry.example, entry.example_input);
}

// Those that an embedding of five rows takes.
std::vector<Scalar> whole_numbers(Index count) {
  std::vector<Scalar> values;
  for (Index i = 0; i < count; ++i) values.push_back(static_cast<Scalar>(i * i % 5));
  return values;
}

std::vector<Scalar> random_numbers(Index count) {
  RandomStream random({.seed = 3});
  std::vector<Scalar> values;
  for (Index i = 0; i < count; ++i) values.push_back(2 * random.normal());
  return values;
}

// For random weights and moments, so that no two inputs of an operation can be exchanged unnoticed.
void expect_same_outputs(const std::string& layers, const Shape& input,
                         const Normaliser& normaliser = {{0}, {1}, {{1}}},
                         const WindowScaling& scaling = {}) {
  SCOPED_TRACE(layers);
  constexpr Index kRows = 3;
  ExportableModel exportable(layers, input, normaliser, scaling);
  RandomStream random({.seed = 5});
  for (Scalar& value : exportable.stored.span()) value = Scalar{0.1F} + random.uniform();
  std::vector<Scalar> x = layers.find("embedding") == std::string::npos ? random_numbers(kRows * input.size())
                                                                        : whole_numbers(kRows * input.size());
  OnnxTensor given{.dims = {kRows}, .values = {x.begin(), x.end()}};
  given.dims.insert(given.dims.end(), input.dims.begin(), input.dims.end());
  const auto computed = evaluate(exported_graph(exportable.to_export()), given);

  Matrix rows(x.data(), kRows, input.size());
  normaliser.apply(rows);
  Workspace workspace(exportable.model, kRows, ActivationRetention::kForEvaluation);
  const ConstMatrix outputs =
      workspace.forward({.values = stored_values(exportable.model, exportable.stored.span()),
                         .x = ConstMatrix(x.data(), kRows, input.size()),
                         .batch = {}});
  const std::vector<double>& found = computed.at("outputs").values;
  ASSERT_EQ(std::ssize(found), outputs.rows() * outputs.cols());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = outputs.data()[i];
    EXPECT_NEAR(found[i], expected, 1e-4 * std::max(1.0, std::abs(expected))) << "number " << i;
  }
}

TEST(Onnx, ComputesWhatTheModelDoesWithEveryLayerAndEveryComposite) {
  for (const LayerEntry& entry : layer_catalog())
    expect_same_outputs(among_others(entry.example), entry.example_input);
  for (const CompositeEntry& entry : composite_catalog())
    expect_same_outputs(among_others(entry.example), entry.example_input);
}

// No argument has the value that ONNX takes where an attribute is missing.
TEST(Onnx, ComputesWhatTheModelDoesWithAllArguments) {
  const Shape image{{7, 10, 4}};  // padding=same is 1 and 1 on one axis, and 0 and 1 on the other
  for (const std::string layer :
       {"conv2d(6, 3, stride=2, padding=same, groups=2)", "conv2d(6, 2, dilation=3, padding=1, bias=false)",
        "conv2d(4, 3, groups=depthwise, padding=1)", "maxpool(3, stride=2, padding=same)", "maxpool(2)",
        "avgpool(4, stride=3, padding=same)", "avgpool(3, stride=1, padding=2)", "batch_norm(eps=0.5)",
        "layer_norm(eps=0.5)", "leaky_relu(0.3)", "elu(0.6)", "global_avgpool"}) {
    expect_same_outputs(layer + " flatten dense(3)", image);
  }
  const Shape sequence = SequenceShape{.positions = 10, .channels = 4}.shape();
  for (const std::string layer :
       {"conv1d(6, 4, stride=3, padding=same, groups=2)", "conv1d(6, 2, dilation=3, padding=1, bias=false)",
        "conv1d(4, 3, groups=depthwise, padding=causal)", "maxpool1d(3, stride=2, padding=same)",
        "maxpool1d(2)", "avgpool1d(4, stride=3, padding=causal)", "avgpool1d(3, stride=1, padding=2)",
        "residual(conv1d(6, 3, stride=2, padding=same) batch_norm(eps=0.5))", "layer_norm(eps=0.5)"}) {
    expect_same_outputs(layer + " flatten dense(3)", sequence);
    expect_same_outputs(layer + " concat(last | mean_over_time | max_over_time) dense(3)", sequence);
  }
  for (const Shape& input : {Shape{{6}}, Shape{{4, 3}}, Shape{{2, 3, 2}}, Shape{{2, 3, 2, 2}}}) {
    expect_same_outputs("scale concat(periodic(2, frequencies=3) | flatten) dense(3)", input);
    expect_same_outputs("tabm(3) tabm_dense(4) tanh tabm_dense(2) tabm_heads(3)", input);
    expect_same_outputs("batch_norm(eps=0.5) concat(tanh | layer_norm(eps=0.5)) flatten dense(3)", input);
  }
  expect_same_outputs("concat(slice(0, 2) | slice(3, 4)) dense(5, bias=false) gelu dense(3)", {{7}});
  expect_same_outputs("embedding(5, 3) dense(3)", {{2, 2}});
  expect_same_outputs("dense(2)", {{2, 2}}, {{0.5}, {1, 2, 3, 4}, {{4}}});
  expect_same_outputs("dense(2)", {{2, 2}}, {{0.5}, {0.25}, {{4}}});
  expect_same_outputs("mean_over_time dense(2)", {{3, 2}, true}, {{0.5, 1}, {1, 2}, {{3, 2}, true}});
}

TEST(Onnx, ComputesWhatTheModelDoesAlongSequences) {
  for (const std::string cell : {"lstm", "gru"}) {
    for (const std::string arguments :
         {"(4)", "(3, layers=2, bias=false)", "(2, layers=3, bidirectional=true)", "(3, last=true)",
          "(2, layers=2, bidirectional=true, last=true)"}) {
      expect_same_outputs(cell + arguments + " flatten dense(3)", {.dims = {5, 2}, .sequence = true});
    }
    expect_same_outputs("as_sequence(3, order=channels) dense(2) " + cell + "(3) flatten dense(2)", {{6}});
  }
  for (const std::string attention :
       {"dense(16) attend(4, kv_heads=2, causal=true, rotary=true)", "dense(12) attend(2, window=2)",
        "dense(12) attend(2, causal=true, window=3)", "dense(4) positions(sinusoidal) gelu(tanh)"}) {
    expect_same_outputs(attention + " flatten dense(3)", {.dims = {5, 2}, .sequence = true});
  }
}

// Its positions are any number of those of the model, none of which sees one behind it.
TEST(Onnx, TakesTokensAtAnyNumberOfPositions) {
  const Shape input = SequenceShape{.positions = 6, .channels = 1}.shape();
  const Index rows = 2;
  for (const std::string layers :
       {"embedding(5, 8) positions(learned) transformer(1, 2, causal=true, window=3) layer_norm dense(5, "
        "tie=0)",
        "embedding(5, 8) positions(sinusoidal) transformer(1, 2, causal=true, kv_heads=1, rotary=true, "
        "norm=rms_norm, mlp=swiglu) dense(5)",
        "embedding(5, 8) gru(4, layers=2) relu dense(5)", "embedding(5, 8) lstm(4) dense(5)",
        "embedding(5, 8) conv1d(4, 3, padding=causal, dilation=2) dense(5)"}) {
    ExportableModel exportable(layers, input);
    RandomStream random({.seed = 5});
    for (Scalar& value : exportable.stored.span()) value = Scalar{0.4F} * random.normal();
    OutputForm form(TargetKind::kClass);
    form.positions = 6;
    ModelToExport exported = exportable.to_export(form);
    exported.tokens = true;
    const auto graph = exported_graph(exported);
    expect_sound(graph);
    for (const auto& value : {graph.input(0), graph.output(0), graph.output(1)})
      EXPECT_EQ(value.type().tensor_type().shape().dim(1).dim_param(), "T");
    const std::vector<Scalar> x = whole_numbers(rows * 6);
    Workspace workspace(exportable.model, rows, ActivationRetention::kForEvaluation);
    const ConstMatrix outputs =
        workspace.forward({.values = stored_values(exportable.model, exportable.stored.span()),
                           .x = ConstMatrix(x.data(), rows, 6),
                           .batch = {}});
    for (const Index positions : {6, 4, 1}) {
      OnnxTensor given{
          .dims = {rows, positions}, .values = {}, .texts = {}, .type = onnx::TensorProto::INT64};
      for (Index i = 0; i < rows * positions; ++i)
        given.values.push_back(at(x, i / positions * 6 + i % positions));
      const OnnxTensor found = evaluate(graph, given).at("outputs");
      EXPECT_EQ(found.dims, (List{rows, positions, 5}));
      for (Index i = 0; i < std::ssize(found.values); ++i)
        EXPECT_NEAR(at(found.values, i), outputs(i / (5 * positions), i % (5 * positions)), 1e-4) << i;
    }
  }
  for (const std::string layer :
       {"lstm(4, bidirectional=true)", "gru(4, last=true)", "conv1d(4, 3, padding=same)"}) {
    ExportableModel exportable("embedding(5, 8) " + layer + " dense(5)", input);
    ModelToExport exported = exportable.to_export();
    exported.tokens = true;
    EXPECT_EQ(exported_graph(exported).input(0).type().tensor_type().shape().dim(1).dim_value(), 6) << layer;
  }
}

// The padding has numbers that are none: they must not show, nor the second record's empty windows.
TEST(Onnx, ComputesWhatTheModelDoesWithLengthsOfItsRecords) {
  const Shape input = SequenceShape{.positions = 7, .channels = 2}.shape();
  const std::vector<Scalar> lengths{7, 1, 4, 2};
  const Index rows = std::ssize(lengths);
  for (const std::string layers :
       {"dense(2) last", "dense(2) mean_over_time", "dense(2) max_over_time",
        "conv1d(3, 3, padding=causal) tanh conv1d(2, 3) last", "conv1d(3, 3) mean_over_time",
        "conv1d(3, 3, stride=2, padding=same) max_over_time", "maxpool1d(3, 2, padding=same) dense(2)",
        "avgpool1d(3, 1, padding=1) conv1d(2, 2, padding=same)", "avgpool1d(2) batch_norm dense(3)",
        "lstm(3, bidirectional=true) dense(3)", "gru(3, last=true)",
        "conv1d(2, 3) lstm(2, layers=2, bias=false) mean_over_time", "residual(gru(2)) layer_norm dense(3)",
        "dense(6) attend(1) mean_over_time", "dense(8) attend(2, kv_heads=1, window=3) dense(2)",
        "dense(6) attend(1, causal=true) last"}) {
    SCOPED_TRACE(layers);
    ExportableModel exportable(layers, input);
    const ModelOp& end = exportable.model.ops().back();
    OutputForm form(TargetKind::kClass);
    form.positions = end.out.sequence ? end.out.dims[0] : 0;
    ModelToExport exported = exportable.to_export(form);
    exported.lengths = true;
    const auto graph = exported_graph(exported);
    expect_sound(graph);
    std::vector<Scalar> x = random_numbers(rows * input.size());
    OnnxTensor given{.dims = {rows, 7, 2}, .values = {x.begin(), x.end()}};
    for (Index i = 0; i < std::ssize(x); ++i) {
      if (i % input.size() / 2 < static_cast<Index>(at(lengths, i / input.size()))) continue;
      x[static_cast<std::size_t>(i)] = 0;
      given.values[static_cast<std::size_t>(i)] = std::nan("");
    }
    OnnxTensor counts{.dims = {rows}, .values = {lengths.begin(), lengths.end()}};
    counts.type = onnx::TensorProto::INT64;
    const auto computed = evaluate(graph, OnnxValues{{"input", given}, {"lengths", counts}});
    Workspace workspace(exportable.model, rows, ActivationRetention::kForEvaluation);
    const ConstMatrix outputs =
        workspace.forward({.values = stored_values(exportable.model, exportable.stored.span()),
                           .x = ConstMatrix(x.data(), rows, input.size()),
                           .batch = {.lengths = lengths}});
    const std::vector<double>& found = computed.at("outputs").values;
    ASSERT_EQ(std::ssize(found), outputs.size());
    const Index width = form.outputs_of_position(outputs.cols());
    if (form.positions > 0) {
      EXPECT_EQ(signatures(graph.output()).back(),
                fmt::format("probabilities[N,{},{}]", form.positions, width));
      EXPECT_NEAR(computed.at("probabilities").values[0] + computed.at("probabilities").values[1] +
                      (width > 2 ? computed.at("probabilities").values[2] : 0),
                  1, 1e-9);
    }
    for (Index i = 0; i < std::ssize(found); ++i) {
      const Index position = i % outputs.cols() / width;
      const auto length = static_cast<Index>(at(lengths, i / outputs.cols()));
      if (form.positions > 0 && position >= at(end.lengths_out, length)) continue;
      EXPECT_NEAR(at(found, i), outputs.data()[i], 1e-4) << "number " << i;
    }
  }
}

TEST(Onnx, ComputesWhatTheModelDoesAroundWindows) {
  for (const auto kind : {WindowScaling::Kind::kLast, WindowScaling::Kind::kStandard}) {
    for (const std::string layers :
         {"dense(6, shared=3)", "dense(4) relu dense(12)", "tabm(2) tabm_heads(6)"}) {
      expect_same_outputs(layers, {{12}}, {{0.5}, {0.25}, {{12}}}, {kind, 3, 4});
      expect_same_outputs(layers, {{12}}, {{0}, {1}, {{1}}}, {kind, 2, 5});
    }
  }
  expect_same_outputs("dense(2, shared=3) tanh dense(3)", {{4, 3}});
  EXPECT_EQ(operations(exported_graph("dense(2, shared=3)", {{6}}, TargetKind::kValue)),
            (Words{"Reshape", "Gemm", "Reshape", "Identity"}));
}

TEST(Onnx, ComputesTheProbabilitiesOfItsOutputs) {
  const OnnxTensor given{.dims = {1, 3}, .values = {1, -2, 0.5}};
  const auto computed = [&](TargetKind targets) {
    return evaluate(exported_graph("dense(3)", {{3}}, targets), given);
  };
  const auto classes = computed(TargetKind::kClass);
  const std::vector<double>& outputs = classes.at("outputs").values;
  double sum = 0;
  for (const double output : outputs) sum += std::exp(output);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(classes.at("probabilities").values[i], std::exp(outputs[i]) / sum, 1e-12);
    EXPECT_NEAR(computed(TargetKind::kBinary).at("probabilities").values[i], 1 / (1 + std::exp(-outputs[i])),
                1e-12);
  }
  EXPECT_FALSE(computed(TargetKind::kValue).contains("probabilities"));
}

TEST(Onnx, ComputesThePredictionsOfItsOutputs) {
  const OnnxTensor given{.dims = {1, 3}, .values = {1, -2, 0.5}};
  ExportableModel exportable("dense(4)", {{3}});
  const auto computed = [&](const OutputForm& form, const std::vector<LabelScale>& scales) {
    ModelToExport exported = exportable.to_export(form);
    exported.label_scales = scales;
    const auto graph = exported_graph(exported);
    expect_sound(graph);
    return evaluate(graph, given);
  };
  const auto means = computed({TargetKind::kValue, Link::kLog}, {});
  const std::vector<double>& outputs = means.at("outputs").values;
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(means.at("predictions").values[i], std::exp(outputs[i]), 1e-12);
  EXPECT_FALSE(computed({TargetKind::kClass, Link::kIdentity}, {}).contains("probabilities")) << "scores";
  EXPECT_FALSE(computed(TargetKind::kValue, {}).contains("predictions"));

  OutputForm levels(TargetKind::kValue);
  levels.quantiles = {0.1, 0.9};
  const std::vector<LabelScale> scales{{.shift = 10, .range = 4},
                                       {.shift = 1, .range = 2, .logarithm = true}};
  const auto labels = computed(levels, scales).at("predictions").values;
  std::vector<double> sorted = outputs;
  std::sort(sorted.begin(), sorted.begin() + 2);
  std::sort(sorted.begin() + 2, sorted.end());
  EXPECT_NE(sorted, outputs) << "nothing to sort";
  for (std::size_t i = 0; i < 4; ++i) {
    const double label = scales[i / 2].undo(sorted[i]);
    EXPECT_NEAR(labels[i], label, 1e-6 * std::abs(label)) << i;
  }
}

// Of labels that single precision cannot hold the answer is double.
TEST(Onnx, PredictionsOfLabelsFarFromZeroAreDoubles) {
  ExportableModel exportable("dense(1)", {{3}});
  ModelToExport exported = exportable.to_export(TargetKind::kValue);
  const std::vector<LabelScale> scales{{.shift = 1'700'000'123, .range = 60}};
  exported.label_scales = scales;
  const auto values = evaluate(exported_graph(exported), OnnxTensor{.dims = {1, 3}, .values = {1, -2, 0.5}});
  EXPECT_EQ(values.at("predictions").type, onnx::TensorProto::DOUBLE);
  EXPECT_NEAR(values.at("predictions").values[0], scales[0].undo(values.at("outputs").values[0]), 1e-5);
}

TEST(Onnx, ImagesHaveTheirChannelsFirstInside) {
  const auto graph = exported_graph("conv2d(3, 1) relu", {{4, 5, 2}}, TargetKind::kValue);
  EXPECT_EQ(operations(graph), (Words{"Transpose", "Conv", "Relu", "Transpose", "Flatten", "Identity"}));
  const auto perm = [&](int node) {
    const auto& ints = graph.node(node).attribute(0).ints();
    return std::vector<Index>(ints.begin(), ints.end());
  };
  EXPECT_EQ(perm(0), (std::vector<Index>{0, 3, 1, 2}));
  EXPECT_EQ(perm(3), (std::vector<Index>{0, 2, 3, 1}));
  EXPECT_EQ(signatures(graph.output()), (Words{"outputs[N,60]"}));
}

TEST(Onnx, ChannelsAreJoinedOnTheAxisThatTheyHaveInside) {
  const auto axis = [](const Shape& input) {
    const auto graph = exported_graph("concat(relu | tanh) flatten dense(2)", input);
    const auto concat = std::ranges::find(graph.node(), "Concat", &onnx::NodeProto::op_type);
    return concat->attribute(0).i();
  };
  EXPECT_EQ(axis({{5}}), 1);
  EXPECT_EQ(axis({{4, 5}}), 3);
  EXPECT_EQ(axis({{4, 5, 2}}), 1);
  EXPECT_EQ(axis({{4, 5, 2, 3}}), 4);
}

TEST(Onnx, NormalisesWhereTheRunDoes) {
  ExportableModel one("dense(2)", {{4}}, {{0.5}, {0.25}, {{4}}});
  expect_tensor(exported_graph(one.to_export()), "normalisation.mean", {}, one.normaliser.mean());
  ExportableModel each("dense(2)", {{2, 2}}, {{0.5}, {1, 2, 3, 4}, {{4}}});
  const auto graph = exported_graph(each.to_export());
  expect_tensor(graph, "normalisation.scale", {{2, 2}}, each.normaliser.scale());
  EXPECT_EQ(operations(graph), (Words{"Sub", "Mul", "Unsqueeze", "Flatten", "Gemm", "Identity", "Softmax"}));
  expect_sound(graph);
}

// The nodes of the graph that do this operation, each with its attributes: "epsilon=0.1".
std::vector<Words> attributes(const onnx::GraphProto& graph, const std::string& operation) {
  std::vector<Words> all;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != operation) continue;
    all.emplace_back();
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      std::string value;
      if (attribute.type() == onnx::AttributeProto::FLOAT) value = fmt::format("{}", attribute.f());
      if (attribute.type() == onnx::AttributeProto::INT) value = fmt::format("{}", attribute.i());
      if (attribute.type() == onnx::AttributeProto::INTS)
        value = fmt::format("{}", fmt::join(attribute.ints(), " "));
      all.back().push_back(fmt::format("{}={}", attribute.name(), value));
    }
    std::ranges::sort(all.back());
  }
  return all;
}

// A runtime takes what is left out for the default of the format.
TEST(Onnx, HoldsTheNumbersOfTheLayers) {
  const auto of = [](const std::string& layers, const Shape& input, const std::string& operation) {
    return attributes(exported_graph(layers, input), operation);
  };
  using Nodes = std::vector<Words>;
  EXPECT_EQ(of("batch_norm(eps=0.125) dense(3)", {{4}}, "BatchNormalization"), (Nodes{{"epsilon=0.125"}}));
  EXPECT_EQ(of("batch_norm(eps=0.125) flatten dense(3)", {{6, 5, 2}}, "BatchNormalization"),
            (Nodes{{"epsilon=0.125"}}));
  EXPECT_EQ(of("leaky_relu(0.25) dense(3)", {{4}}, "LeakyRelu"), (Nodes{{"alpha=0.25"}}));
  EXPECT_EQ(of("elu(0.5) dense(3)", {{4}}, "Elu"), (Nodes{{"alpha=0.5"}}));
  EXPECT_EQ(
      of("conv2d(4, 3, stride=2, padding=1, dilation=2, groups=2) flatten dense(3)", {{9, 9, 2}}, "Conv"),
      (Nodes{{"dilations=2 2", "group=2", "pads=1 1 1 1", "strides=2 2"}}));
  EXPECT_EQ(of("maxpool(3, stride=2, padding=1) flatten dense(3)", {{9, 8, 2}}, "MaxPool"),
            (Nodes{{"kernel_shape=3 3", "pads=1 1 1 1", "strides=2 2"}}));
  EXPECT_EQ(of("avgpool(2) flatten dense(3)", {{9, 8, 2}}, "AveragePool"),
            (Nodes{{"count_include_pad=0", "kernel_shape=2 2", "pads=0 0 0 0", "strides=2 2"}}));
  const Shape sequence = SequenceShape{.positions = 9, .channels = 2}.shape();
  EXPECT_EQ(of("conv1d(4, 3, stride=2, padding=causal, groups=2) flatten dense(3)", sequence, "Conv"),
            (Nodes{{"dilations=1", "group=2", "pads=2 0", "strides=2"}}));
  EXPECT_EQ(of("avgpool1d(2) flatten dense(3)", sequence, "AveragePool"),
            (Nodes{{"count_include_pad=0", "kernel_shape=2", "pads=0 0", "strides=2"}}));
  EXPECT_EQ(of("dense(3)", {{4}}, "Gemm"), (Nodes{{"transB=1"}}));
  EXPECT_EQ(of("dense(3)", {{4}}, "Softmax"), (Nodes{{"axis=1"}}));
  EXPECT_EQ(of("concat(dense(2) | dense(3)) dense(3)", {{4}}, "Concat"), (Nodes{{"axis=1"}}));
}

TEST(Onnx, GivesTheProbabilitiesThatAPredictionGives) {
  const auto last = [](TargetKind targets) {
    return operations(exported_graph("dense(2)", {{3}}, targets)).back();
  };
  EXPECT_EQ(last(TargetKind::kClass), "Softmax");
  EXPECT_EQ(last(TargetKind::kBinary), "Sigmoid");
  EXPECT_EQ(last(TargetKind::kValue), "Identity");
}

TEST(Onnx, LayersThatShareAWeightShareItInTheFile) {
  const auto graph = exported_graph("dense(4) tanh dense(4, tie=0)", {{4}});
  ASSERT_EQ(graph.node(2).op_type(), "Gemm");
  EXPECT_EQ(graph.node(0).input(1), "0.weight");
  EXPECT_EQ(graph.node(2).input(1), "0.weight");
  EXPECT_EQ(graph.node(2).input(2), "2.bias");
  expect_sound(graph);
}

TEST(Onnx, RefusesAModelThatNoFileHolds) {
  const Model model({.layers = "dense(30000)"}, {{20000}});
  const Normaliser normaliser({0}, {1}, {{1}});
  const ModelToExport exported{.model = model,
                               .store = {.layout = &model.stored_layout(), .values = {}},
                               .normaliser = normaliser,
                               .form = TargetKind::kValue};
  expect_parts(error_text<ConfigError>([&] { exported_graph(exported); }),
               {"2.2 GiB", "less than 2.0 GiB", "safetensors"});
}

}  // namespace
}  // namespace lockstep::onnx_test
