// How a label of a table became the target that a model learns, and the way back: predictions are given in
// the units of the label.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// target = (l(label) - shift) / range, where l is the signed logarithm or, without it, the label itself.
struct LabelScale {
  double shift = 0;
  double range = 1;
  bool logarithm = false;
  bool clips = false;  ///< what comes of that is clipped smoothly; for features only

  /// 1 / range; 0 for a column that never changes, whose numbers all become 0.
  double factor() const { return range > 0 ? 1 / range : 0; }
  /// The target, or the feature, that a number becomes.
  double apply(double number) const;
  /// The label of which this is the target.
  Scalar undo(Scalar target) const;
};

/// x / sqrt(1 + (x / 3)^2), which stays between -3 and 3 (Holzmueller et al. 2024).
double smooth_clip(double x);

/// The scale of a numeric column, label or feature.
LabelScale scale_of(const TableColumn& column);

/// The feature of a missing number: that of column.fill or, without it, of the mean.
double missing_feature(const TableColumn& column);

/// One for each target, in their order; empty if no label is scaled.
std::vector<LabelScale> label_scales(const TableSchema& schema);

/// Reads them from a saved schema: none from "" and from that of another format. Errors: DataError.
std::vector<LabelScale> read_label_scales(const std::string& json);

/// The first label that is scaled, as data.columns says it: "price: log". "": none is.
std::string describe_scaled_label(const TableSchema& schema);

}  // namespace lockstep
