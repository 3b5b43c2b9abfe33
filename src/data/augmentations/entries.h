// One function per augmentation file; the catalog lists them.
#pragma once

#include "lockstep/data/augmentation.h"

namespace lockstep {

AugmentationEntry flip_entry();
AugmentationEntry crop_entry();
AugmentationEntry cutout_entry();

}  // namespace lockstep
