// One function per kind of file; the catalog lists them.
#pragma once

#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {

PredictionFileEntry csv_predictions();
PredictionFileEntry npy_predictions();

}  // namespace lockstep
