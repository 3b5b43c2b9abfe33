// The catalog of data formats.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct TableQuestions;

/// The request to open a data set that the options name, or a file of records to predict from.
struct OpenRequest {
  const DataOptions& options;
  Split split = Split::kTrain;
  std::uint64_t seed = 1;
  PeerGroup& peers;                           ///< ranks that open it too
  std::string schema = {};                    ///< schema of the training data; "" to learn it from this data
  const TableQuestions* questions = nullptr;  ///< what else is asked of a table
  /// The file to predict from (--input), without its labels.
  std::optional<std::string> input = {};
  bool labels = false;       ///< but with those of a table: the past that a forecast is made from
  bool numbers = false;      ///< a record is a single number, as arrays of one dimension have them
  std::string lengths = {};  ///< the file of their lengths, of sequences; "": all positions count
};

struct FormatEntry {
  std::string name;
  std::string help;
  std::vector<std::string> extensions;  ///< "-ubyte.gz": matched at the end of the file name
  std::vector<std::string> options;     ///< config keys that it reads
  bool has_files = true;                ///< there can be one to predict from
  /// The names of the fields of a file's records that hold numbers; null: its formats have no such names.
  /// Errors: DataError.
  std::vector<std::string> (*fields)(const std::string& path) = nullptr;
  bool reads(std::string_view key) const { return std::ranges::count(options, key) > 0; }
  /// *Collective.* Null if the options name no such split. Errors, the same on all ranks (see
  /// PeerGroup::agree): ConfigError if that is the training set; DataError if a file is missing or wrong.
  std::function<std::unique_ptr<RecordSource>(const OpenRequest&)> open;
};

/// Every data format there is. To add one: src/README.md.
std::span<const FormatEntry> format_catalog();

/// The entry of data.format or, when that is empty, the one whose extension data.train has.
/// Errors: ConfigError.
const FormatEntry& choose_format(const DataOptions& options);

/// The entry whose extension the file to predict from (--input) has or, if it has no known one, the one of
/// data.format. Errors: ConfigError.
const FormatEntry& format_of_input(const std::string& path, const DataOptions& options);

}  // namespace lockstep
