// Arrays of HDF5 files, one with the features and one with the labels, of one file or of two.
#include <algorithm>
#include <cstring>
#include <vector>

#include "array_file.h"
#include "data/inputs/byte_inputs.h"
#include "data/inputs/hdf5_dataset.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// An array as bytes, row after row.
class Hdf5Input final : public ByteStream::Input {
 public:
  explicit Hdf5Input(const ArrayPath& path) : dataset_(path) {}

  bool compressed() const override { return false; }  // any row can be gone to
  Index max_bytes() const override { return dataset_.rows() * dataset_.row_bytes(); }

  Index read_some(std::byte* bytes, Index count) override {
    const Index wanted = std::clamp<Index>(max_bytes() - position_, 0, count);
    if (wanted == 0) return 0;
    const Index row_bytes = dataset_.row_bytes();
    const Index row = position_ / row_bytes;
    const Index inside = position_ % row_bytes;
    const Index whole = inside == 0 ? wanted / row_bytes : 0;
    if (whole > 0) return dataset_.read({row, row + whole}, bytes) ? whole * row_bytes : -1;
    row_.resize(static_cast<std::size_t>(row_bytes));
    if (!dataset_.read({row, row + 1}, row_.data())) return -1;
    const Index part = std::min(row_bytes - inside, wanted);
    std::memcpy(bytes, row_.data() + inside, static_cast<std::size_t>(part));
    return part;
  }
  std::string reason() const override { return dataset_.reason(); }

 private:
  Hdf5Dataset dataset_;
  std::vector<std::byte> row_;  // a row of which a part is wanted
};

ArrayFile open_dataset(const std::string& path, const std::string& key) {
  const ArrayPath source = split_array_path(path);
  if (source.array.empty()) {
    const std::vector<std::string> names = Hdf5Dataset::names(path);
    throw DataError(
        "{} names the file '{}', which may hold several data sets ({}): say which one, as in '{}:x_train'",
        key, path, names.empty() ? "none" : listed(names), path);
  }
  return open_array_file(path, [&](ByteStream&, ArrayFile& file) {
    const Hdf5Dataset dataset(source);
    file.sizes = dataset.sizes();
    file.element = &dataset.element();
  });
}

}  // namespace

std::unique_ptr<ByteStream::Input> open_hdf5(const ArrayPath& path) {
  return std::make_unique<Hdf5Input>(path);
}

FormatEntry hdf5_format() {
  return array_format(
      "hdf5",
      "arrays of HDF5 files, one with features (bytes are scaled to 0..1), one with labels, named as in "
      "\"data.h5:x_train\" or \"data.h5:/group/x_train\"; needs a build with the HDF5 library",
      {".h5", ".hdf5"}, "data set", open_dataset);
}

}  // namespace lockstep
