// How well a column predicts the label by itself.
#pragma once

#include <optional>

#include "record_sketch.h"

namespace lockstep {

/// Learnt from one half of a sample, and tried on the other. Numbers are predicted from the nearest one,
/// texts from the same one.
struct AlonePrediction {
  Index tried = 0;
  Index right = 0;       ///< of classes
  Index most_often = 0;  ///< that the most frequent class is right for
  double explained = 0;  ///< of numbers: the share of their variance
};
/// Nothing if the sample is too small to tell. `classes`: the label is one of few values.
std::optional<AlonePrediction> predict_alone(const RecordSketch& sketch,
                                             const std::vector<TableColumn>& columns, std::size_t feature,
                                             std::size_t label, bool classes);

/// It predicts nearly all, and far more than a guess.
bool gives_away(const AlonePrediction& prediction, bool classes);

}  // namespace lockstep
