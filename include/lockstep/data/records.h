// The records that a rank trains or evaluates on. A record is known by its id, its number in the data set,
// 0 <= id < rows.
#pragma once

#include <span>

#include "lockstep/base/types.h"
#include "lockstep/data/dataset.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

class Records {
 public:
  virtual ~Records() = default;

  /// Records held here, and the memory that they take in bytes.
  virtual Index rows() const = 0;
  virtual Index bytes() const = 0;

  /// Writes the features of the records `ids`, as the file has them (bytes are scaled to [0, 1]), to the rows
  /// of x (ids.size() x features), and their targets, with the weight behind them if there is one, to the
  /// rows of `targets` (ids.size() x label_columns). Local; safe from several threads. Requires that each id
  /// is held here.
  virtual void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const = 0;

  /// The steps before this one are over; it and those after it will be gathered next. A hint: records that
  /// are read as they are needed are read ahead.
  virtual void expect(Index) const {}
};

// The part of a record that a rank keeps: all of it, or less where its stage of the model needs less.

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
