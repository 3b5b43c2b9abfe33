// The whole way from a record to a prediction as an ONNX graph: normalisation, model, predictions.
// Format: https://github.com/onnx/onnx/blob/main/docs/IR.md
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "operations.h"
#include "sample_order.h"
#include "writer.h"

namespace lockstep {
namespace {

constexpr Index kIrVersion = 8;
constexpr Index kOpset = 13;
constexpr const char* kInput = "input";
constexpr const char* kOutputs = "outputs";
constexpr const char* kProbabilities = "probabilities";
constexpr const char* kPredictions = "predictions";

// Protobuf writes no file of 2 GiB or more; a tensor's name and shape come on top of its numbers.
constexpr Index kMaxBytes = std::numeric_limits<int>::max();
constexpr Index kTensorBytes = 1024;

std::string add_normalisation(OnnxGraph& graph, const ModelToExport& exported) {
  const Normaliser& normaliser = exported.normaliser;
  if (normaliser.is_identity()) return kInput;
  const Shape shape = normaliser.mean().size() == 1 ? Shape{} : exported.model.input();
  graph.add_tensor("normalisation.mean", shape, normaliser.mean());
  graph.add_tensor("normalisation.scale", shape, normaliser.scale());
  return graph.add("Mul", {graph.add("Sub", {kInput, "normalisation.mean"}), "normalisation.scale"});
}

std::vector<std::string> names_of(const std::vector<Range>& ranges, const Layout& layout) {
  std::vector<std::string> names;
  for (const Range range : ranges) {
    names.push_back(std::ranges::find(layout.params, range, &ParamInfo::range)->name);
  }
  return names;
}

// Gives the model's output.
std::string add_layers(OnnxGraph& graph, const Model& model, const std::string& input) {
  std::vector<std::string> outputs;
  for (const ModelOp& op : model.ops()) {
    const Operation operation = op.layer->operation();
    OnnxLayer layer{.op = op,
                    .operation = operation,
                    .inputs = {},
                    .tensors = names_of(operation.tensors, model.layout()),
                    .state = names_of(operation.state, model.state_layout())};
    for (const Index from : op.inputs) {
      layer.inputs.push_back(from == kModelInput ? input : at(outputs, from));
    }
    graph.begin_layer(op.path);
    outputs.push_back(add_layer(graph, layer));
  }
  return outputs.back();
}

// The outputs of a calibrated model are divided by its temperature.
std::string divide(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  if (exported.temperature == 1) return outputs;
  return graph.add("Div", {outputs, graph.add_number(exported.temperature)});
}

// Adds the labels whose targets the outputs are: y = output * range + shift, and of logarithms sign(y) (e^|y|
// - 1). `a` is y where that is the logarithm of a label, else 0.
void add_undone_scales(OnnxGraph& graph, const ModelToExport& exported, const Shape& shape) {
  std::vector<Scalar> ranges;
  std::vector<Scalar> shifts;
  std::vector<Scalar> logarithms;
  for (const LabelScale& scale : exported.label_scales) {
    for (Index i = 0; i < exported.form.outputs_per_target(); ++i) {
      ranges.push_back(static_cast<Scalar>(scale.range));
      shifts.push_back(static_cast<Scalar>(scale.shift));
      logarithms.push_back(scale.logarithm ? Scalar{1} : Scalar{0});
    }
  }
  graph.add_tensor("labels.range", shape, ranges);
  graph.add_tensor("labels.shift", shape, shifts);
  graph.add_tensor("labels.logarithm", shape, logarithms);
  const std::string y = graph.add("Add", {graph.add("Mul", {kOutputs, "labels.range"}), "labels.shift"});
  const std::string a = graph.add("Mul", {y, "labels.logarithm"});
  const std::string e = graph.add("Sub", {graph.add("Exp", {graph.add("Abs", {a})}), graph.add_number(1)});
  const std::string label = graph.add("Mul", {graph.add("Sign", {a}), e});
  graph.add_output(kPredictions, shape, "Identity", graph.add("Add", {graph.add("Sub", {y, a}), label}));
}

// Adds the numbers that a prediction gives, where they are not the outputs.
void add_predictions(OnnxGraph& graph, const ModelToExport& exported, const Shape& shape) {
  const OutputForm& form = exported.form;
  switch (form.link) {
    case Link::kSoftmax:
      return graph.add_output(kProbabilities, shape, "Softmax", kOutputs, {{"axis", Index{1}}});
    case Link::kLogit:
      return graph.add_output(kProbabilities, shape, "Sigmoid", kOutputs);
    case Link::kLog:
      return graph.add_output(kPredictions, shape, "Exp", kOutputs);
    case Link::kIdentity:
      if (form.targets != TargetKind::kValue || form.direction || exported.label_scales.empty()) return;
      return add_undone_scales(graph, exported, shape);
  }
}

void add_graph(OnnxGraph& graph, const ModelToExport& exported) {
  const Model& model = exported.model;
  graph.begin_layer(kInput);
  graph.add_input(kInput, model.input());
  const std::string input = to_graph_order(graph, add_normalisation(graph, exported), model.input());
  const std::string output = add_layers(graph, model, input);
  graph.begin_layer(kOutputs);
  const Shape shape{{model.output().size()}};
  graph.add_output(kOutputs, shape, "Identity",
                   divide(graph, exported, to_rows(graph, output, model.output())));
  add_predictions(graph, exported, shape);
}

void refuse_large(const onnx::ModelProto& file, const Layout& layout) {
  const Index bytes = static_cast<Index>(file.ByteSizeLong()) + layout.count() * Index{sizeof(Scalar)} +
                      std::ssize(layout.params) * kTensorBytes;
  if (bytes <= kMaxBytes) return;
  throw ConfigError(
      fmt::format("this model takes {} as an ONNX file, which holds less than {}; export as "
                  "safetensors or npz",
                  human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(kMaxBytes))));
}

}  // namespace

void write_onnx(const ModelToExport& exported, OutputFile& output) {
  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(LOCKSTEP_VERSION);
  file.add_opset_import()->set_version(kOpset);
  file.mutable_graph()->set_name("lockstep");
  OnnxGraph graph(*file.mutable_graph());
  add_graph(graph, exported);
  refuse_large(file, *exported.store.layout);
  for (const ParamInfo& param : exported.store.layout->params) {
    graph.add_tensor(param.name, param.shape, part(exported.store.values, param.range));
  }
  output.write(file.SerializeAsString());
}

}  // namespace lockstep
