// Left and right exchanged.
#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/data/loading/augmenter.h"

namespace lockstep {
namespace {

class Flip final : public Augmentation {
 public:
  Flip(double probability, const ImageShape& shape) : probability_(probability), shape_(shape) {
    if (probability >= 0 && probability <= 1) return;
    throw ConfigError("'probability' must be from 0 to 1, found {}", probability);
  }

  void apply(std::span<Scalar> image, RandomStream& random) const override {
    if (static_cast<double>(random.uniform()) >= probability_) return;
    for (Index row = 0; row < shape_.height; ++row) flip_row(image.data() + row * shape_.row_size());
  }

 private:
  void flip_row(Scalar* row) const {
    for (Index left = 0, right = shape_.width - 1; left < right; ++left, --right) {
      Scalar* pixel = row + left * shape_.channels;
      std::swap_ranges(pixel, pixel + shape_.channels, row + right * shape_.channels);
    }
  }

  double probability_;
  ImageShape shape_;
};

}  // namespace

AugmentationEntry flip_entry() {
  return {.name = "flip",
          .signature = "flip(probability=0.5)",
          .help = "exchanges left and right, with this probability",
          .example = "flip(1)",
          .make = [](TermArguments& arguments, const ImageShape& shape) {
            return std::make_unique<Flip>(arguments.take_number("probability", 0.5), shape);
          }};
}

}  // namespace lockstep
