// The order of the numbers of a sample. In Lockstep an image has its channels last, in ONNX first: inside the
// graph an image is [N, channels, height, width], and any other sample [N, dims] as it is.
#pragma once

#include <string>

#include "graph.h"

namespace lockstep {

/// From [N, dims], in the order of data files, to the order inside the graph.
std::string to_graph_order(OnnxGraph& graph, const std::string& value, const Shape& sample);

/// From the order inside the graph to [N, size], in the order of data files.
std::string to_rows(OnnxGraph& graph, const std::string& value, const Shape& sample);

/// From the order inside the graph to [N, size], in that order.
std::string flattened(OnnxGraph& graph, const std::string& value, const Shape& sample);

/// Axes inside the graph, that of the batch included.
Index rank(const Shape& sample);

/// The axis that the last dimension of a sample has inside the graph.
Index last_axis(const Shape& sample);

}  // namespace lockstep
