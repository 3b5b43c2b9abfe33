// onnx/writer.cpp where the build has the library, else onnx/missing.cpp, which says how to get it.
#pragma once

#include <onnx/onnx_pb.h>

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_onnx(const ModelToExport& exported, OutputFile& output);

// A file's account of itself beside its graph, as texts by name.

/// Adds, as JSON, "versions"; the facts of the run; and for a table whose columns are the inputs "columns",
/// "targets", "classes" and "outputs".
void add_metadata(onnx::ModelProto& file, const ModelToExport& exported);

}  // namespace lockstep
