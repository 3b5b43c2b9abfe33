// How dense records are packed: the features, as bytes (to be scaled to [0, 1]) or as scalars, and then the
// targets as scalars, with the weight behind them if there is one.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

struct DenseLayout {
  bool byte_features = false;
  Index features = 0;
  Index labels = 0;  ///< targets, and the weight if there is one

  Index feature_bytes() const { return features * (byte_features ? 1 : Index{sizeof(Scalar)}); }
  Index record_bytes() const { return feature_bytes() + labels * Index{sizeof(Scalar)}; }

  /// RecordSource::unpack for such records.
  void unpack(std::span<const std::byte* const> records, Matrix& x, Matrix& targets) const;
};

}  // namespace lockstep
