// How well a column predicts the label by itself.
#pragma once

#include <optional>

#include "record_sketch.h"

namespace lockstep {

/// Learnt from one half of a sample, and tried on the other. Numbers are predicted from the nearest one,
/// texts from the same one.
struct AlonePrediction {
  Index tried = 0;
  Index right = 0;       ///< records whose class it predicts
  Index most_often = 0;  ///< records of the class that is the most frequent
  double explained = 0;  ///< share of the variance of numbers
};
/// Nothing if the sample is too small to tell. `classes`: the label is one of few values.
std::optional<AlonePrediction> predict_alone(const RecordSketch& sketch,
                                             const std::vector<TableColumn>& columns, std::size_t feature,
                                             std::size_t label, bool classes);

/// It predicts nearly all, and far more than a guess.
bool gives_away(const AlonePrediction& prediction, bool classes);

}  // namespace lockstep
