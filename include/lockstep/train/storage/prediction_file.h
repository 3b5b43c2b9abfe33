// The files that predictions are written to, row after row.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/table/schema/kept_columns.h"
#include "lockstep/math/matrix.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  /// The next rows, with a number for each column: of a column with classes, that of the class. Errors:
  /// DataError.
  virtual void append(const PredictedRows& rows) = 0;
  /// Instead of a row that cannot be read: nothing is known of it. Errors: DataError.
  virtual void append_unknown() = 0;
  /// Nothing is there under the file's name before this, unless it is a stream. Errors: DataError.
  virtual void finish() = 0;
};

struct PredictionFileRequest {
  std::string path;     ///< see OutputFile
  Index rows = 0;       ///< rows that will be appended
  Index positions = 0;  ///< above 0: so many rows are those of a record
  std::vector<PredictionColumn> columns;
  TextColumns* kept = nullptr;  ///< columns of the input for the same rows; null: none
};

struct PredictionFileEntry {
  std::string name;
  std::string extension;  ///< ".csv"
  std::string help;       ///< one sentence: what a row is
  bool has_texts = true;  ///< whether a row holds texts and class names beside numbers
  /// Errors: DataError if the file cannot be made.
  std::function<std::unique_ptr<PredictionFile>(const PredictionFileRequest&)> make;
};

/// Every kind there is. To add one: src/README.md.
std::span<const PredictionFileEntry> prediction_file_catalog();

/// The entry called `format` (--format) or, where that is empty, the one whose extension `path` has, or that
/// of text if it is a stream without one. Errors: ConfigError naming the known ones, also where `path` has
/// the extension of another entry than `format`.
const PredictionFileEntry& choose_prediction_file(const std::string& path, const std::string& format = "");

/// The names of all columns of a text: "row", those that are kept, and those of the predictions. Each is
/// there once: the second "x" is called "x.2", as in a table that is read.
std::vector<std::string> names_of_columns(const PredictionFileRequest& request);

// The rows of a prediction as lines of a file.

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
  void note_bad_rows(const ConstMatrix& rows, const PredictedRows& converted);
  void pass_skipped();

  PredictionTable& table_;
  PredictionFile& file_;
  std::span<const Index> skipped_;  // skipped records that are still to come
  Index next_ = 0;                  // line
  BadRows bad_rows_;
};

}  // namespace lockstep
