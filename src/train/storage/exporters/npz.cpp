#include "lockstep/train/storage/exporter.h"
#include "train/storage/exporters/npz/writer.h"

namespace lockstep {

ExporterEntry npz_exporter() {
  return {.name = "npz",
          .help = "one array for each tensor, for numpy.load",
          .feature = "ZIP",
          .write = write_npz};
}

}  // namespace lockstep
