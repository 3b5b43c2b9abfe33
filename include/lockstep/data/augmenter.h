// The augmenter prepares training images: the augmentations of data.augment in the order in which they are
// written, with normalisation between them. As with torchvision, crop and flip see the image as read (what
// comes in at the border is black) and the normalised image comes after; cutout is last, because its square
// should be the mean, which carries nothing, and not the darkest pixel there is (DeVries & Taylor 2017).
//
// The random numbers of an image are keyed by (seed, pass over the records, record id), so the same image in
// the same epoch is changed the same way on any number of ranks and threads, however far ahead it is
// prepared; in full mode, where every replica passes over all records, each has changes of its own.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/data/augmentation.h"
#include "lockstep/data/normaliser.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Which records the rows of a batch are, and on which pass over the data (see Sampler::walk).
struct BatchKey {
  std::span<const Index> ids;
  Index walk = 0;
};

/// Immutable, so safe from several threads.
class Augmenter {
 public:
  /// Errors: ConfigError naming data.augment if the text is wrong, or if records of the shape `features` are
  /// no images (height x width, or height x width x channels).
  Augmenter(std::string_view text, const Shape& features, std::uint64_t seed);

  /// Augments and normalises the rows of x, as they were read. Allocates nothing.
  void apply(Matrix& x, const BatchKey& key, const Normaliser& normaliser) const;

 private:
  void add(const Term& spec, const ImageShape& shape);

  std::uint64_t seed_;
  std::vector<std::unique_ptr<Augmentation>> before_;  // normalising
  std::vector<std::unique_ptr<Augmentation>> after_;
};

/// Null for an empty text.
std::unique_ptr<Augmenter> make_augmenter(std::string_view text, const Shape& features, std::uint64_t seed);

}  // namespace lockstep
