// A data set of an HDF5 file as bytes, row after row.
#include <algorithm>
#include <cstring>
#include <vector>

#include "data/byte_inputs.h"
#include "data/hdf5_dataset.h"

namespace lockstep {
namespace {

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

}  // namespace

std::unique_ptr<ByteStream::Input> open_hdf5(const ArrayPath& path) {
  return std::make_unique<Hdf5Input>(path);
}

}  // namespace lockstep
