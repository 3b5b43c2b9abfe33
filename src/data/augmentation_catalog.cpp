#include <array>

#include "lockstep/data/augmenter.h"

namespace lockstep {

// One line for each file in augmentations/.
AugmentationEntry flip_entry();
AugmentationEntry crop_entry();
AugmentationEntry cutout_entry();

std::span<const AugmentationEntry> augmentation_catalog() {
  static const std::array kEntries{flip_entry(), crop_entry(), cutout_entry()};
  return kEntries;
}

}  // namespace lockstep
