// An augmentation: a random change of a picture that leaves its label true, so that training never sees quite
// the same picture twice. Immutable; where its random numbers come from is the augmenter's business.
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

  /// Changes one picture in place. Allocates nothing.
  virtual void apply(std::span<Scalar> picture, RandomStream& random) const = 0;
};

struct AugmentationEntry {
  std::string name;
  std::string signature;  ///< "crop(padding)"
  std::string help;       ///< one sentence, with its source
  std::string example;    ///< a text for the catalog tests, "crop(1)"
  /// Works on normalised pictures, where 0 is the mean; others work on pictures as read, where 0 is black.
  bool after_normalising = false;
  /// Errors: ConfigError if an argument does not fit the pictures.
  std::function<std::unique_ptr<Augmentation>(TermArguments&, const PictureShape&)> make;
};

/// Every augmentation there is. One more: one file in data/augmentations and one line in its list.
std::span<const AugmentationEntry> augmentation_catalog();

}  // namespace lockstep
