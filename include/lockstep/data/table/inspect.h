// The summary of a table, for someone who is about to train on it.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/infer.h"

namespace lockstep {

struct TableInspection {
  std::string path;
  TableText table;
  std::vector<std::string> missing_values;  ///< texts that stand for a missing value in all columns
  std::string encoding;                     ///< encoding of the file
  std::vector<TableColumn> columns;         ///< columns with the kinds that are declared or guessed
  std::vector<ColumnGuess> guesses;
  Scan scan;
  std::vector<std::string> special = {};  ///< data.columns as given
};

/// A key of [data] without its section, and its value as TOML.
struct DataSetting {
  std::string name;
  std::string value;
};

/// Reads all of a table: a file, or several as list_files has them. Errors: ConfigError if the options do not
/// fit its columns; DataError.
TableInspection inspect_table(const std::string& path, const TableOptions& options);

/// Types, ranges, missing shares, categories, what is suspicious, and a [data] section.
std::string to_text(const TableInspection& inspection);
std::string to_json(const TableInspection& inspection);
/// The keys that train on the table with these columns: without data.label if there is none.
std::vector<DataSetting> data_settings(const TableInspection& inspection);
/// Those keys as a [data] section; a comment stands for a label that is not named.
std::string data_section(const TableInspection& inspection);

}  // namespace lockstep
