// The augmenter prepares training images: the augmentations of data.augment in the order in which they are
// written, with normalisation between them. As with torchvision, crop and flip see the image as read (what
// comes in at the border is black) and the normalised image comes after; cutout is last, because its square
// should be the mean, which carries nothing, and not the darkest pixel there is (DeVries & Taylor 2017).
//
// The random numbers of an image are keyed by (seed, pass over the records, record id), so the same image in
// the same epoch is changed the same way on any number of ranks and threads, however far ahead it is
// prepared; in full mode, where every replica passes over all records, each has changes of its own.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"

namespace lockstep {

// Brings features to the scale that training likes: (x - mean) / std with constants from the config.

/// (x - mean) / std, feature by feature or with one constant for all.
class Normaliser {
 public:
  /// A list has 1 number, one for each feature, or one for each channel of an image or a sequence. Errors:
  /// ConfigError if it has another number of them, or a deviation is not above 0.
  Normaliser(const std::vector<double>& mean, const std::vector<double>& std, const Shape& features);
  void apply(Matrix& x) const;

  /// Changes nothing.
  bool is_identity() const { return identity_; }
  /// The number that is subtracted, and the factor on the rest: one number for all features, or one for each.
  std::span<const Scalar> mean() const { return mean_; }
  std::span<const Scalar> scale() const { return scale_; }

 private:
  bool identity_ = false;
  std::vector<Scalar> mean_;
  std::vector<Scalar> scale_;
};

// An augmentation: a random change of an image that leaves its label true, so that training never sees quite
// the same image twice. Immutable; where its random numbers come from is the augmenter's business.

class Augmentation {
 public:
  virtual ~Augmentation() = default;

  /// Changes one image in place. Allocates nothing.
  virtual void apply(std::span<Scalar> image, RandomStream& random) const = 0;
};

struct AugmentationEntry {
  std::string name;
  std::string signature;  ///< "crop(padding)"
  std::string help;       ///< one sentence, with its source
  std::string example;    ///< a text for the catalog tests, "crop(1)"
  /// Works on normalised images, where 0 is the mean; others work on images as read, where 0 is black.
  bool after_normalising = false;
  /// Errors: ConfigError if an argument does not fit the images.
  std::function<std::unique_ptr<Augmentation>(TermArguments&, const ImageShape&)> make;
};

/// Every augmentation there is. To add one: src/README.md.
std::span<const AugmentationEntry> augmentation_catalog();

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
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Augmentation>> before_;  // normalising
  std::vector<std::unique_ptr<Augmentation>> after_;
};

/// Null for an empty text.
std::unique_ptr<Augmenter> make_augmenter(std::string_view text, const Shape& features, std::uint64_t seed);

}  // namespace lockstep
