// A square of zeros (DeVries & Taylor 2017, "Improved regularization of convolutional neural networks with
// cutout"). Its centre is anywhere in the image, each pixel as likely, so that it may hang over the border:
// the paper finds it important that some images keep more than others.
#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/data/loading/augmenter.h"

namespace lockstep {
namespace {

class Cutout final : public Augmentation {
 public:
  Cutout(Index size, const ImageShape& shape) : size_(size), shape_(shape) {
    if (size <= std::min(shape.height, shape.width)) return;
    throw ConfigError("'size' must be at most the height and the width of the images ({}x{})", shape.height,
                      shape.width);
  }

  void apply(std::span<Scalar> image, RandomStream& random) const override {
    const Range rows = side(random.below(shape_.height), shape_.height);
    const Range columns = side(random.below(shape_.width), shape_.width);
    for (Index row = rows.begin; row < rows.end; ++row) {
      Scalar* first = image.data() + row * shape_.row_size() + columns.begin * shape_.channels;
      std::fill_n(first, columns.size() * shape_.channels, Scalar{0});
    }
  }

 private:
  Range side(Index centre, Index length) const {
    const Index begin = centre - size_ / 2;
    return intersect({begin, begin + size_}, {0, length});
  }

  Index size_;
  ImageShape shape_;
};

}  // namespace

AugmentationEntry cutout_entry() {
  return {.name = "cutout",
          .signature = "cutout(size)",
          .help =
              "a square of zeros of this side at a random position, in the normalised image (DeVries & "
              "Taylor 2017)",
          .example = "cutout(2)",
          .after_normalising = true,
          .make = [](TermArguments& arguments, const ImageShape& shape) {
            return std::make_unique<Cutout>(arguments.take_index("size", 1), shape);
          }};
}

}  // namespace lockstep
