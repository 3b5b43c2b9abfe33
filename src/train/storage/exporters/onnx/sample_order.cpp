#include "sample_order.h"

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

std::string to_graph_order(OnnxGraph& graph, const std::string& value, const Shape& sample) {
  if (has_channels(sample))
    return graph.add("Transpose", {value}, {{"perm", std::vector<Index>{0, 3, 1, 2}}});
  if (is_bare_image(sample)) return graph.add("Unsqueeze", {value, graph.add_list({1})});
  return value;
}

std::string to_rows(OnnxGraph& graph, const std::string& value, const Shape& sample) {
  if (!has_channels(sample)) return flattened(graph, value, sample);
  return flattened(graph, graph.add("Transpose", {value}, {{"perm", std::vector<Index>{0, 2, 3, 1}}}),
                   sample);
}

std::string flattened(OnnxGraph& graph, const std::string& value, const Shape& sample) {
  return sample.dims.size() == 1 ? value : graph.add("Flatten", {value}, {{"axis", Index{1}}});
}

Index rank(const Shape& sample) {
  return as_image(sample) ? 4 : 1 + std::ssize(sample.dims);
}

Index last_axis(const Shape& sample) {
  return has_channels(sample) ? 1 : rank(sample) - 1;
}

}  // namespace lockstep
