// A build without HDF5.
#include <fmt/format.h>

#include "../hdf5_dataset.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw DataError(
      fmt::format("cannot read '{}': this trainer was built without HDF5; install its library (Debian: "
                  "apt-get install libhdf5-dev), run cmake and build again, or save the arrays with numpy",
                  path));
}

}  // namespace

struct Hdf5Dataset::Library {};

Hdf5Dataset::Hdf5Dataset(const ArrayPath& path) {
  fail(path.file);
}
Hdf5Dataset::~Hdf5Dataset() = default;

bool Hdf5Dataset::read(Range, std::byte*) {
  return false;
}

std::string Hdf5Dataset::list(const std::string& file) {
  fail(file);
}

}  // namespace lockstep
