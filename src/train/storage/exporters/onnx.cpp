#include "lockstep/train/storage/exporter.h"
#include "train/storage/exporters/onnx/writer.h"

namespace lockstep {

ExporterEntry onnx_exporter() {
  return {
      .name = "onnx",
      .help =
          "an ONNX model (opset 13) from records to predictions, for inference runtimes; of a table from its "
          "columns to the names of classes, or to numbers in its units",
      .feature = "ONNX",
      .encodes = true,
      .write = write_onnx};
}

}  // namespace lockstep
