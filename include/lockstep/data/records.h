// The records that a rank trains or evaluates on. A record is known by its id, its number in the data set,
// 0 <= id < rows.
#pragma once

#include <span>

#include "lockstep/base/types.h"
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

}  // namespace lockstep
