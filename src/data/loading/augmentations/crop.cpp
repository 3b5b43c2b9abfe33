// A window of the image's size at a random position of the image with a black border: the image moved by
// up to `padding` pixels, with zeros where it moved away (Krizhevsky 2009; He et al. 2015, section 4.2).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/errors.h"
#include "lockstep/data/loading/augmenter.h"

namespace lockstep {
namespace {

class Crop final : public Augmentation {
 public:
  Crop(Index padding, const ImageShape& shape) : padding_(padding), shape_(shape) {
    if (padding < std::min(shape.height, shape.width)) return;
    throw ConfigError(
        "'padding' must be below the height and the width of the images ({}x{}), or nothing may be left of "
        "them",
        shape.height, shape.width);
  }

  void apply(std::span<Scalar> image, RandomStream& random) const override {
    const Index down = random.below(2 * padding_ + 1) - padding_;
    const Index right = random.below(2 * padding_ + 1) - padding_;
    // The rows move in the order in which none is overwritten before it has moved.
    for (Index i = 0; i < shape_.height; ++i) {
      const Index to = down > 0 ? shape_.height - 1 - i : i;
      Scalar* row = image.data() + to * shape_.row_size();
      if (Range{0, shape_.height}.contains(to - down)) {
        move_row(row - down * shape_.row_size(), right, row);
      } else {
        std::fill_n(row, shape_.row_size(), Scalar{0});
      }
    }
  }

 private:
  // `from` may be the row itself.
  void move_row(const Scalar* from, Index right, Scalar* row) const {
    const Index gap = std::abs(right) * shape_.channels;
    const Index kept = shape_.row_size() - gap;
    const auto bytes = static_cast<std::size_t>(kept) * sizeof(Scalar);
    if (right >= 0) {
      std::memmove(row + gap, from, bytes);
      std::fill_n(row, gap, Scalar{0});
    } else {
      std::memmove(row, from + gap, bytes);
      std::fill_n(row + kept, gap, Scalar{0});
    }
  }

  Index padding_;
  ImageShape shape_;
};

}  // namespace

AugmentationEntry crop_entry() {
  return {
      .name = "crop",
      .signature = "crop(padding)",
      .help =
          "a window of the same size at a random position of the image with this many black pixels around",
      .example = "crop(1)",
      .make = [](TermArguments& arguments, const ImageShape& shape) {
        return std::make_unique<Crop>(arguments.take_index("padding", 1), shape);
      }};
}

}  // namespace lockstep
