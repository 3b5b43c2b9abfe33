#include <array>

#include "augmentations/entries.h"
#include "lockstep/data/augmentation.h"

namespace lockstep {

std::span<const AugmentationEntry> augmentation_catalog() {
  static const std::array kEntries{flip_entry(), crop_entry(), cutout_entry()};
  return kEntries;
}

}  // namespace lockstep
