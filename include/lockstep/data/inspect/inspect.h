// The summary of a table, for someone who is about to train on it, with suspicious facts about its records:
// columns that give the label away, that say nothing or that only name a record, records that occur twice,
// rare classes, and other data sets that are unlike the training data.
//
// Ranges, categories and counts are those of all records. What needs records side by side is found in a
// sample: at most 50,000 records, fewer of a wide table, chosen by a hash of their number; and records that
// occur twice are looked for among a million different ones at most, chosen by a hash of their content. So
// memory is bounded, and the result follows from the files alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/windows/time_windows.h"

namespace lockstep {

enum class FindingKind {
  kLeak,
  kDuplicates,
  kOverlap,
  kDrift,
  kUnseen,
  kImbalance,
  kIdentifier,
  kRounding,
  kSentinel,
  kSpelling,
  kNearlyConstant,
  kTimes,
  kYears,
  kFarDate,
  kMissing,
};
/// "nearly constant".
std::string to_string(FindingKind kind);

/// Something suspicious in the records of a table.
struct Finding {
  FindingKind kind = FindingKind::kLeak;
  std::string column;  ///< "": it is about whole records
  Index count = 0;     ///< number of records it is about, of all or of the sample that was looked at
  std::string fact;    ///< with counts and an example
  std::string setting =
      {};  ///< a line of a config that helps, with its section where that is not [data]; or ""
  std::string value = {};     ///< of a sentinel: the number that stands for a missing one
  std::string question = {};  ///< about a sentinel, to whoever knows the data

  std::string text() const { return question.empty() ? fact : fact + ": " + question; }
};

/// The files of a data set.
struct FileSet {
  std::string name;                ///< its name in messages; of what is inspected the path
  std::vector<std::string> paths;  ///< paths of its files
};

struct TableInspection {
  std::string path;
  TableText table;
  TableOptions options;                   ///< as given, with the encoding and the lines above that were found
  std::vector<TableColumn> columns = {};  ///< columns with the kinds that are declared or guessed
  std::vector<ColumnGuess> guesses = {};
  Scan scan = {};
  std::vector<Finding> findings = {};
  std::optional<SeriesSummary> series =
      {};  ///< for the caller to fill, if options.windows.time names a column
};

/// A key of [data] without its section, and its value as TOML.
struct DataSetting {
  std::string name;
  std::string value;
};

/// Reads all of a table, and the sets that are compared with it. Errors: ConfigError if the options do not
/// fit its columns; DataError.
TableInspection inspect_table(const FileSet& data, const TableOptions& options,
                              const std::vector<FileSet>& others = {});

/// Reads it again, now that its columns have other missing values, and finds what it summarises anew.
void summarise_again(TableInspection& inspection);

/// Types, ranges, missing shares, categories, what is suspicious, and a [data] section.
std::string to_text(const TableInspection& inspection);
std::string to_json(const TableInspection& inspection);
/// "2 different: 'a' 62.5 %, 'b' 37.5 %": the first `most` of the values, with their shares of so many.
std::string list_shares(const std::vector<ValueCounts::Entry>& values, std::string_view noun, Index whole,
                        std::size_t most);
/// At most so many records would be bad with the kinds of its columns.
Index count_bad(const TableInspection& inspection);
/// The keys that train on the table with these columns: without data.label if there is none.
std::vector<DataSetting> data_settings(const TableInspection& inspection);
/// Those keys as a [data] section; a comment stands for a label that is not named.
std::string data_section(const TableInspection& inspection);

}  // namespace lockstep
