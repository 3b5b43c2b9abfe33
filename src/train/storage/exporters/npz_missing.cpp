// A build that writes no npz archives.
#include "lockstep/base/build_info.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_npz(const ModelToExport&, OutputFile&) {
  require_feature("ZIP", "--format npz");
}

}  // namespace lockstep
