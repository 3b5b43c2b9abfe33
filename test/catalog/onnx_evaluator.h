// Computes an ONNX graph in double precision, operation by operation as the standard defines them (opset 13,
// https://onnx.ai/onnx/operators), without a runtime. An attribute that an operation does not know is an
// error, as it is for a runtime.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "onnx_tensors.h"

namespace lockstep::test {

/// All values of the graph by name, for its one input. Errors: std::invalid_argument for an operation or an
/// attribute that is not known here.
std::map<std::string, OnnxTensor> evaluate(const onnx::GraphProto& graph, const OnnxTensor& input);

}  // namespace lockstep::test
