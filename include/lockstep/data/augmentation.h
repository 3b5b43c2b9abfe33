// An augmentation: a random change of an image that leaves its label true, so that training never sees quite
// the same image twice. Immutable; where its random numbers come from is the augmenter's business.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockstep/base/random.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"

namespace lockstep {

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

}  // namespace lockstep
