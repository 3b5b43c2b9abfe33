#include <array>

#include "exporters/entries.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {

std::span<const ExporterEntry> exporter_catalog() {
  static const std::array kEntries{safetensors_exporter(), npz_exporter(), onnx_exporter()};
  return kEntries;
}

}  // namespace lockstep
