// One function per exporter file; the catalog lists them.
#pragma once

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

ExporterEntry safetensors_exporter();
ExporterEntry npz_exporter();
ExporterEntry onnx_exporter();

}  // namespace lockstep
