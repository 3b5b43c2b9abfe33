// npz/writer.cpp where the build has the library, else npz/missing.cpp, which says how to get it.
#pragma once

#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_npz(const ModelToExport& exported, OutputFile& output);

}  // namespace lockstep
