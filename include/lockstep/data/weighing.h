// The samples of a data set get weights from their classes, and from how many of their targets are there,
// beside the weights that it holds itself.
#pragma once

#include <span>

#include "lockstep/data/dataset.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

struct Weighing {
  std::span<const Scalar> of_class = {};  ///< the weight of each class, which outlives this; empty: 1
  bool masks = false;                     ///< targets may be missing

  /// Whether samples of this data set have weights.
  bool has_weights(const DatasetInfo& info) const { return info.weighted || !of_class.empty(); }
};

/// Turns label_columns() columns of `labels`, as Records::gather writes them, into target_columns, packed at
/// its start. `weights`: becomes the weight of each row; not written if samples have none. `present`: becomes
/// the number of targets of each row; not written unless targets may be missing.
void weigh(const Weighing& weighing, const DatasetInfo& info, Matrix& labels, std::span<Scalar> weights,
           std::span<Scalar> present);

}  // namespace lockstep
