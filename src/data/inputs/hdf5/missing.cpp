// A build without HDF5.
#include <fmt/format.h>

#include "data/inputs/hdf5_dataset.h"
#include "lockstep/base/build_info.h"

namespace lockstep {
namespace {

void refuse(const std::string& path) {
  require_feature("HDF5", fmt::format("cannot read '{}'", path));
}

}  // namespace

struct Hdf5Dataset::Library {};

Hdf5Dataset::Hdf5Dataset(const ArrayPath& path) {
  refuse(path.file);
}
Hdf5Dataset::~Hdf5Dataset() = default;

bool Hdf5Dataset::read(Range, std::byte*) {
  return false;
}

std::vector<std::string> Hdf5Dataset::names(const std::string& file) {
  refuse(file);
  return {};
}

}  // namespace lockstep
