// onnx/writer.cpp where the build has the library, else onnx/missing.cpp, which says how to get it.
#pragma once

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_onnx(const ModelToExport& exported, OutputFile& output);

}  // namespace lockstep
