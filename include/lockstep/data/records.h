// What a data format offers: how many records there are and of what shape (from headers alone), and the
// records that one rank needs. A record is known by its id, its number in the data set, 0 <= id < rows.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/options.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Which of the three data sets of a run.
enum class Split { kTrain, kValidation, kTest };

/// "train", "validation", "test".
std::string to_string(Split split);

struct DatasetInfo {
  Index rows = 0;
  Shape features;            ///< of one record
  Index target_columns = 0;  ///< 0: no labels
  std::string name;          ///< for messages: a path, or "synthetic"
  Index record_bytes = 0;    ///< memory that a loaded record takes
  Index source_bytes = 0;    ///< sum of the sizes of its files; compared over the ranks
};

/// The records that one rank holds in memory.
class Records {
 public:
  virtual ~Records() = default;

  /// Records held here, and the memory that they take in bytes.
  virtual Index rows() const = 0;
  virtual Index bytes() const = 0;

  /// Writes the features of the records `ids`, as the file has them (bytes are scaled to [0, 1]), to the rows
  /// of x (ids.size() x features), and their targets to the rows of `targets` (ids.size() x target_columns).
  /// Local; safe from several threads. Requires that each id is held here.
  virtual void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const = 0;
};

/// The records that this rank needs. The count is stated, not found: a data set that is computed can have
/// more ids than anyone wants to walk through.
struct RecordFilter {
  std::function<bool(Index id)> wants;
  Index count = 0;  ///< number of ids in [0, rows) that it wants
};

/// What the loss asks of the targets: whole numbers below `classes` (if above 0), or numbers in [0, 1].
struct TargetRule {
  Index classes = 0;
  bool unit_interval = false;
};

/// One data set, opened: its headers are read and checked, its records are not.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual const DatasetInfo& info() const = 0;
  /// Reads the wanted records; their targets must obey the rule.
  /// Errors: DataError with file, record, expected, found.
  virtual std::unique_ptr<Records> load(const RecordFilter& wanted, const TargetRule& rule) const = 0;
};

struct FormatEntry {
  std::string name;
  std::string help;
  std::vector<std::string> extensions;  ///< "-ubyte.gz": matched at the end of the file name
  std::vector<std::string> options;     ///< config keys that it reads
  /// Null if the options name no such split.
  /// Errors: ConfigError if that is the training set; DataError if a file is missing or its header is wrong.
  std::function<std::unique_ptr<RecordSource>(const DataOptions&, Split, std::uint64_t seed)> open;
  /// A file of records to predict from (--input), its labels (if it has any) left out: target_columns is 0.
  /// Null for a format without extensions. Errors: DataError if the file is missing or its header is wrong.
  std::function<std::unique_ptr<RecordSource>(const DataOptions&, const std::string& path)> open_input;
};

/// Every data format there is. One more: one file in data/formats and one line in its list.
std::span<const FormatEntry> format_catalog();

/// The entry of data.format or, when that is empty, the one whose extension data.train has.
/// Errors: ConfigError.
const FormatEntry& choose_format(const DataOptions& options);

/// The entry whose extension the file to predict from (--input) has. Errors: ConfigError.
const FormatEntry& format_of_input(const std::string& path);

}  // namespace lockstep
