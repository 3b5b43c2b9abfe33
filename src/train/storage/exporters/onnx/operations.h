// The layers of a model in the words of ONNX.
#pragma once

#include <string>
#include <vector>

#include "graph.h"
#include "lockstep/nn/model.h"

namespace lockstep {

/// A layer on its way into the graph, with the names that things have there.
struct OnnxLayer {
  const ModelOp& op;
  Operation operation;
  std::vector<std::string> inputs;   ///< names of inputs that are in the order inside the graph
  std::vector<std::string> tensors;  ///< names of operation.tensors
  std::vector<std::string> state;    ///< names of operation.state
};

/// Adds what the layer computes in evaluation; gives its output, in the order inside the graph.
/// Errors: ConfigError naming the layer if there are no words for it.
std::string add_layer(OnnxGraph& graph, const OnnxLayer& layer);

}  // namespace lockstep
