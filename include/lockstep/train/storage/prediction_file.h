// The files that predictions are written to, row after row.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockstep/math/matrix.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  /// The next rows. Errors: DataError.
  virtual void append(const ConstMatrix& rows) = 0;
  /// Instead of a row that cannot be read: nothing is known of it. Errors: DataError.
  virtual void append_unknown() = 0;
  /// Nothing is there under the file's name before this, unless it is a stream. Errors: DataError.
  virtual void finish() = 0;
};

struct PredictionFileRequest {
  std::string path;  ///< see OutputFile
  Index rows = 0;    ///< rows that will be appended
  PredictionColumns columns;
};

struct PredictionFileEntry {
  std::string name;
  std::string extension;  ///< ".csv"
  std::string help;       ///< one sentence: what a row is
  /// Errors: DataError if the file cannot be made.
  std::function<std::unique_ptr<PredictionFile>(const PredictionFileRequest&)> make;
};

/// Every kind there is. To add one: src/README.md.
std::span<const PredictionFileEntry> prediction_file_catalog();

/// The entry whose extension `path` has, or that of text if it is a stream without one. Errors: ConfigError
/// naming the known ones.
const PredictionFileEntry& choose_prediction_file(const std::string& path);

}  // namespace lockstep
