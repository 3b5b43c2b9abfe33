// Arrays of HDF5 files, one with the features and one with the labels, of one file or of two.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "array_file.h"
#include "data/byte_inputs.h"
#include "data/hdf5_dataset.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// An array as bytes, row after row.
class Hdf5Input final : public ByteStream::Input {
 public:
  explicit Hdf5Input(const ArrayPath& path) : dataset_(path) {}

  bool compressed() const override { return false; }  // any row can be gone to
  Index max_bytes() const override { return dataset_.rows() * dataset_.row_bytes(); }

  Index read(std::byte* bytes, Index count) override {
    const Index row_bytes = dataset_.row_bytes();
    const Index wanted = std::clamp<Index>(max_bytes() - position_, 0, count);
    for (Index done = 0; done < wanted;) {
      const Index row = position_ / row_bytes;
      const Index inside = position_ % row_bytes;
      const Index whole = inside == 0 ? (wanted - done) / row_bytes : 0;
      Index part = whole * row_bytes;
      if (whole > 0) {
        if (!dataset_.read({row, row + whole}, bytes + done)) return -1;
      } else {
        row_.resize(static_cast<std::size_t>(row_bytes));
        if (!dataset_.read({row, row + 1}, row_.data())) return -1;
        part = std::min(row_bytes - inside, wanted - done);
        std::memcpy(bytes + done, row_.data() + inside, static_cast<std::size_t>(part));
      }
      done += part;
      position_ += part;
    }
    return wanted;
  }

  bool go_to(Index position) override {
    position_ = position;
    return true;
  }
  std::string reason() const override { return dataset_.reason(); }

 private:
  Hdf5Dataset dataset_;
  Index position_ = 0;
  std::vector<std::byte> row_;  // a row of which a part is wanted
};

ArrayFile open_dataset(const std::string& path, const std::string& key) {
  const ArrayPath source = split_array_path(path);
  if (source.array.empty()) {
    throw DataError(
        fmt::format("{} names the file '{}', which may hold several data sets ({}): say which one, "
                    "as in '{}:x_train'",
                    key, path, Hdf5Dataset::list(path), path));
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
