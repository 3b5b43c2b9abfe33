#include <array>

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

// One line for each file in exporters/.
ExporterEntry safetensors_exporter();
ExporterEntry npz_exporter();
ExporterEntry onnx_exporter();
ExporterEntry onnx_features_exporter();

std::span<const ExporterEntry> exporter_catalog() {
  static const std::array kEntries{safetensors_exporter(), npz_exporter(), onnx_exporter(),
                                   onnx_features_exporter()};
  return kEntries;
}

}  // namespace lockstep
