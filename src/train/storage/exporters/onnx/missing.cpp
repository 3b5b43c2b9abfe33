// A build that writes no ONNX files.
#include "lockstep/base/build_info.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_onnx(const ModelToExport&, OutputFile&) {
  require_feature("ONNX", "--format onnx");
}

}  // namespace lockstep
