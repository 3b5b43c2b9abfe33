#include "lockstep/train/storage/exporter.h"
#include "onnx/writer.h"

namespace lockstep {

ExporterEntry onnx_exporter() {
  return {.name = "onnx",
          .help =
              "an ONNX model (opset 13) from records to predictions, normalisation included, for inference "
              "runtimes",
          .feature = "ONNX",
          .write = write_onnx};
}

}  // namespace lockstep
