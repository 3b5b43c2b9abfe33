// The part of a record that a rank keeps: all of it, or less where its stage of the model needs less.
#pragma once

#include "lockstep/data/dataset.h"

namespace lockstep {

enum class RecordPart {
  kAll,
  kTargets,  ///< the targets, and the weight behind them: what the loss needs
  kNothing,
};

/// The part that holds features, if they are needed, and targets, if they are. Features come with targets:
/// these are few bytes.
inline RecordPart needed_part(bool features, bool targets) {
  if (features) return RecordPart::kAll;
  return targets ? RecordPart::kTargets : RecordPart::kNothing;
}

/// Bytes of that part of a packed record; 0 where records are computed.
inline Index bytes_of_part(RecordPart part, Index record_bytes, Index label_columns) {
  if (part == RecordPart::kNothing || record_bytes == 0) return 0;
  return part == RecordPart::kAll ? record_bytes : label_columns * Index{sizeof(Scalar)};
}

}  // namespace lockstep
