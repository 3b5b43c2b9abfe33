#include "lockstep/train/storage/exporter.h"
#include "train/storage/exporters/onnx/writer.h"

namespace lockstep {

ExporterEntry onnx_features_exporter() {
  return {
      .name = "onnx_features",
      .help =
          "as onnx, but of a table from the features that are made of its columns (schema.json says how), "
          "in one matrix, to probabilities or numbers",
      .feature = "ONNX",
      .write = [](const ModelToExport& exported, OutputFile& output) {
        ModelToExport features = exported;
        features.schema = nullptr;
        write_onnx(features, output);
      }};
}

}  // namespace lockstep
