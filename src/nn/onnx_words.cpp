#include "lockstep/nn/onnx_words.h"

#include <numeric>

namespace lockstep {
namespace {

// An image without a number of channels has one, so that its order is the same either way.
bool has_channels(const Shape& sample) {
  return sample.dims.size() == 3;
}

bool is_bare_image(const Shape& sample) {
  return as_image(sample) && !has_channels(sample);
}

}  // namespace

OnnxFunction onnx_operation(const char* op_type) {
  return [op_type](OnnxNodes& graph, const OnnxLayer& layer) { return graph.add(op_type, layer.inputs); };
}

std::vector<std::string> joined_names(std::vector<std::string> names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

std::string onnx_ordered(OnnxNodes& graph, const std::string& value, const Shape& sample) {
  if (has_channels(sample)) return graph.transpose(value, {0, 3, 1, 2});
  if (is_bare_image(sample)) return graph.add("Unsqueeze", {value, graph.add_list({1})});
  return value;
}

std::string onnx_rows(OnnxNodes& graph, const std::string& value, const Shape& sample) {
  if (!has_channels(sample)) return onnx_flat(graph, value, sample);
  return onnx_flat(graph, graph.transpose(value, {0, 2, 3, 1}), sample);
}

std::string onnx_flat(OnnxNodes& graph, const std::string& value, const Shape& sample) {
  return sample.dims.size() == 1 ? value : graph.flatten(value);
}

std::string onnx_swapped(OnnxNodes& graph, const std::string& value) {
  return graph.transpose(value, {0, 2, 1});
}

std::string onnx_slice(OnnxNodes& graph, const std::string& value, Range range, Index axis) {
  return graph.add(
      "Slice", {value, graph.add_list({range.begin}), graph.add_list({range.end}), graph.add_list({axis})});
}

std::string onnx_masked(OnnxNodes& graph, const OnnxLayer& layer, double fill) {
  const std::string& x = layer.inputs.front();
  if (layer.lengths.empty()) return x;
  return graph.add("Where", {onnx_counted(graph, layer), x, graph.add_number(fill)});
}

std::string onnx_positions(OnnxNodes& graph, const std::string& sequence) {
  return onnx_slice(graph, graph.add("Shape", {sequence}), {1, 2}, 0);
}

std::string onnx_first_rows(OnnxNodes& graph, const std::string& table, const std::string& sequence) {
  return graph.add("Slice",
                   {table, graph.add_list({0}), onnx_positions(graph, sequence), graph.add_list({0})});
}

std::string onnx_lengths(OnnxNodes& graph, const OnnxLayer& layer) {
  const std::string rows = graph.add("Unsqueeze", {layer.lengths, graph.add_list({1})});
  return graph.add("Gather", {graph.add_list(layer.counted), rows}, {{"axis", Index{0}}});
}

std::string onnx_counted(OnnxNodes& graph, const OnnxLayer& layer) {
  std::vector<Index> numbers(static_cast<std::size_t>(layer.in.front().dims[0]));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  const std::string counted = graph.add("Greater", {onnx_lengths(graph, layer), graph.add_list(numbers)});
  return graph.add("Unsqueeze", {counted, graph.add_list({2})});
}

Index onnx_rank(const Shape& sample) {
  return as_image(sample) ? 4 : 1 + std::ssize(sample.dims);
}

Index onnx_last_axis(const Shape& sample) {
  return has_channels(sample) ? 1 : onnx_rank(sample) - 1;
}

}  // namespace lockstep
