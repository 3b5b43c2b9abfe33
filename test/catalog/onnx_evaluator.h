// Computes an ONNX graph in double precision, operation by operation as the standard defines them (opset 13,
// https://onnx.ai/onnx/operators), without a runtime. An attribute that an operation does not know is an
// error, as it is for a runtime, and so are numbers of two types in one operation.
#pragma once

#include <onnx/onnx_pb.h>

#include "onnx_tensors.h"
#include "support/common.h"

namespace lockstep::test {

using OnnxValues = std::map<std::string, OnnxTensor>;

/// All values of the graph by name, for its inputs, or for its one input. Errors: std::invalid_argument for
/// an operation, an attribute or types that are not known here.
OnnxValues evaluate(const onnx::GraphProto& graph, const OnnxValues& inputs);
OnnxValues evaluate(const onnx::GraphProto& graph, const OnnxTensor& input);

}  // namespace lockstep::test
