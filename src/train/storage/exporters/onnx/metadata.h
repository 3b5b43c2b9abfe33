// A file's account of itself beside its graph, as texts by name.
#pragma once

#include <onnx/onnx_pb.h>

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

/// Adds, as JSON, "versions"; the facts of the run; and for a table whose columns are the inputs "columns",
/// "targets", "classes" and "outputs".
void add_metadata(onnx::ModelProto& file, const ModelToExport& exported);

}  // namespace lockstep
