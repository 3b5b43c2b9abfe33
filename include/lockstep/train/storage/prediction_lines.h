// The rows of a prediction as lines of a file.
#pragma once

#include <span>

#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {

/// Rows of predictions that are no finite numbers. Records that were skipped are not among them.
struct BadRows {
  Index count = 0;
  Index first = -1;  ///< line in the file, from 0 on
};

/// Writes a line for each record of the input: records that were skipped keep theirs, of which nothing is
/// known.
class PredictionLines {
 public:
  /// `skipped`: lines, ascending. All must outlive this.
  PredictionLines(PredictionTable& table, PredictionFile& file, std::span<const Index> skipped)
      : table_(table), file_(file), skipped_(skipped) {}

  /// The next rows of predict_rows(), of records that were not skipped. Errors: DataError.
  void append(const ConstMatrix& rows);
  /// Errors: DataError.
  void finish();

  const BadRows& bad_rows() const { return bad_rows_; }

 private:
  void note_bad_rows(const ConstMatrix& rows);
  void pass_skipped();

  PredictionTable& table_;
  PredictionFile& file_;
  std::span<const Index> skipped_;  // skipped records that are still to come
  Index next_ = 0;                  // line
  BadRows bad_rows_;
};

}  // namespace lockstep
