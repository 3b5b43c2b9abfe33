#include "operations.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <numbers>
#include <string_view>

#include "lockstep/base/errors.h"
#include "sample_order.h"

namespace lockstep {
namespace {

using Axes = std::vector<Index>;

std::vector<std::string> joined(std::vector<std::string> names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

Index whole(const OnnxLayer& layer, std::string_view key) {
  return static_cast<Index>(layer.operation.attribute(key));
}

// "stride" gives {stride_y, stride_x}.
Axes both(const OnnxLayer& layer, const std::string& key) {
  return {whole(layer, key + "_y"), whole(layer, key + "_x")};
}

Axes padding(const OnnxLayer& layer) {
  return {whole(layer, "pad_top"), whole(layer, "pad_left"), whole(layer, "pad_bottom"),
          whole(layer, "pad_right")};
}

// ---- weights ---------------------------------------------------------------------------------------------

std::string dense(OnnxGraph& graph, const OnnxLayer& layer) {
  const std::string x = flattened(graph, layer.inputs.front(), layer.op.in.front());
  return graph.add("Gemm", joined({x}, layer.tensors), {{"transB", Index{1}}});
}

std::string conv2d(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("Conv", joined(layer.inputs, layer.tensors),
                   {{"strides", both(layer, "stride")},
                    {"dilations", both(layer, "dilation")},
                    {"group", whole(layer, "groups")},
                    {"pads", padding(layer)}});
}

std::string embedding(OnnxGraph& graph, const OnnxLayer& layer) {
  const std::string rows = to_rows(graph, layer.inputs.front(), layer.op.in.front());
  const std::string numbers = graph.add("Cast", {rows}, {{"to", Index{onnx::TensorProto::INT64}}});
  const std::string vectors = graph.add("Gather", {layer.tensors.front(), numbers}, {{"axis", Index{0}}});
  return graph.add("Flatten", {vectors}, {{"axis", Index{1}}});
}

// ---- pooling ---------------------------------------------------------------------------------------------

std::vector<OnnxAttribute> windows(const OnnxLayer& layer) {
  return {
      {"kernel_shape", both(layer, "size")}, {"strides", both(layer, "stride")}, {"pads", padding(layer)}};
}

std::string maxpool(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("MaxPool", layer.inputs, windows(layer));
}

std::string avgpool(OnnxGraph& graph, const OnnxLayer& layer) {
  std::vector<OnnxAttribute> attributes = windows(layer);
  attributes.emplace_back("count_include_pad", Index{0});
  return graph.add("AveragePool", layer.inputs, attributes);
}

std::string global_avgpool(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("Flatten", {graph.add("GlobalAveragePool", layer.inputs)}, {{"axis", Index{1}}});
}

// ---- normalisation ---------------------------------------------------------------------------------------

// ONNX normalises along axis 1: there the channels of an image stand, and the features of a vector.
std::string batch_norm(OnnxGraph& graph, const OnnxLayer& layer) {
  const Shape& sample = layer.op.in.front();
  const bool image = as_image(sample).has_value();
  const std::string x = image ? layer.inputs.front() : flattened(graph, layer.inputs.front(), sample);
  const std::string y = graph.add("BatchNormalization", joined(joined({x}, layer.tensors), layer.state),
                                  {{"epsilon", layer.operation.attribute("eps")}});
  if (image || sample.dims.size() == 1) return y;
  Axes dims{-1};
  dims.insert(dims.end(), sample.dims.begin(), sample.dims.end());
  return graph.add("Reshape", {y, graph.add_list(dims)});
}

// In the operations of opset 13, which has no LayerNormalization.
std::string layer_norm(OnnxGraph& graph, const OnnxLayer& layer) {
  Axes axes;
  for (Index axis = 1; axis < rank(layer.op.in.front()); ++axis) axes.push_back(axis);
  const std::string mean = graph.add("ReduceMean", layer.inputs, {{"axes", axes}});
  const std::string centred = graph.add("Sub", {layer.inputs.front(), mean});
  const std::string squares = graph.add("Mul", {centred, centred});
  const std::string variance = graph.add("ReduceMean", {squares}, {{"axes", axes}});
  const std::string eps = graph.add_number(layer.operation.attribute("eps"));
  const std::string deviation = graph.add("Sqrt", {graph.add("Add", {variance, eps})});
  const std::string normal = graph.add("Div", {centred, deviation});
  return graph.add("Add", {graph.add("Mul", {normal, layer.tensors[0]}), layer.tensors[1]});
}

// ---- activations -----------------------------------------------------------------------------------------

std::string gelu(OnnxGraph& graph, const OnnxLayer& layer) {
  const std::string& x = layer.inputs.front();
  const std::string scaled = graph.add("Mul", {x, graph.add_number(1 / std::numbers::sqrt2)});
  const std::string twice = graph.add("Add", {graph.add("Erf", {scaled}), graph.add_number(1)});
  return graph.add("Mul", {graph.add("Mul", {x, graph.add_number(0.5)}), twice});
}

std::string silu(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("Mul", {layer.inputs.front(), graph.add("Sigmoid", layer.inputs)});
}

std::string leaky_relu(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("LeakyRelu", layer.inputs, {{"alpha", layer.operation.attribute("slope")}});
}

std::string elu(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("Elu", layer.inputs, {{"alpha", layer.operation.attribute("alpha")}});
}

// ---- shapes and joins ------------------------------------------------------------------------------------

std::string flatten(OnnxGraph& graph, const OnnxLayer& layer) {
  return flattened(graph, layer.inputs.front(), layer.op.in.front());
}

std::string slice(OnnxGraph& graph, const OnnxLayer& layer) {
  const Index first = whole(layer, "first");
  const Index end = first + whole(layer, "count");
  return graph.add(
      "Slice", {layer.inputs.front(), graph.add_list({first}), graph.add_list({end}), graph.add_list({1})});
}

std::string concat(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.add("Concat", layer.inputs, {{"axis", last_axis(layer.op.in.front())}});
}

// Only training drops.
std::string dropout(OnnxGraph&, const OnnxLayer& layer) {
  return layer.inputs.front();
}

// ---- the table -------------------------------------------------------------------------------------------

using AddLayer = std::function<std::string(OnnxGraph&, const OnnxLayer&)>;

// A layer for which ONNX has one operation without attributes.
AddLayer same_as(const char* op_type) {
  return [op_type](OnnxGraph& graph, const OnnxLayer& layer) { return graph.add(op_type, layer.inputs); };
}

const std::map<std::string, AddLayer>& words() {
  static const std::map<std::string, AddLayer> kWords{{"dense", dense},
                                                      {"conv2d", conv2d},
                                                      {"embedding", embedding},
                                                      {"maxpool", maxpool},
                                                      {"avgpool", avgpool},
                                                      {"global_avgpool", global_avgpool},
                                                      {"batch_norm", batch_norm},
                                                      {"layer_norm", layer_norm},
                                                      {"relu", same_as("Relu")},
                                                      {"leaky_relu", leaky_relu},
                                                      {"elu", elu},
                                                      {"gelu", gelu},
                                                      {"silu", silu},
                                                      {"softplus", same_as("Softplus")},
                                                      {"sigmoid", same_as("Sigmoid")},
                                                      {"tanh", same_as("Tanh")},
                                                      {"flatten", flatten},
                                                      {"slice", slice},
                                                      {"concat", concat},
                                                      {"sum", same_as("Sum")},
                                                      {"dropout", dropout}};
  return kWords;
}

}  // namespace

std::string add_layer(OnnxGraph& graph, const OnnxLayer& layer) {
  const auto found = words().find(layer.operation.name);
  if (found == words().end()) {
    throw ConfigError(
        fmt::format("{}: the export to ONNX has no words for '{}'; export as safetensors or npz",
                    layer.op.title, layer.operation.name));
  }
  return found->second(graph, layer);
}

}  // namespace lockstep
