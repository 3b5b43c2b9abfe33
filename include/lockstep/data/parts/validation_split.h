// Training and validation records from one set of files. Which of the two a record is follows from the seed
// and the records, whatever ranks read them and however the files are read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/held_out.h"
#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/column_texts.h"

namespace lockstep {

/// The parts of the training samples that are held back.
struct DataParts {
  std::optional<ValidationPart> validation = {};
  std::optional<ValidationPart> test = {};

  bool any() const { return validation || test; }
};

/// The parts that data.validation and data.test_part name. Errors: ConfigError, also if there is a file of
/// that name.
DataParts parts_beside_files(const DataOptions& data);

/// The data as the formats are to open them: a part is no file, and a column that says only to which part or
/// series a record belongs, or only its time in windows, is no feature, unless the config takes it for one.
DataOptions data_of_files(const DataOptions& data, const DataParts& parts = {});

/// The columns of a table that the parts, and windows, are divided by.
std::vector<std::string> dividing_columns(const DataParts& parts, const TableOptions& table);

/// *Collective.* The records of the parts: those of the test set are chosen first, those of the validation
/// set from the others. Errors, the same on all ranks: ConfigError if these records cannot be divided so;
/// DataError.
HoldOut hold_out(const DataParts& parts, std::uint64_t seed, const TableRecords& table, PeerGroup& peers);
/// *Collective.* As above for records that are no table; opened without anything held back.
HoldOut hold_out(const DataParts& parts, std::uint64_t seed, const RecordSource& whole, PeerGroup& peers);

/// Null for a set that there is not.
struct DataSets {
  std::unique_ptr<RecordSource> train = nullptr;
  std::unique_ptr<RecordSource> validation = nullptr;
  std::unique_ptr<RecordSource> test = nullptr;
  HoldOut held = {};  ///< by which the sets were divided
};

/// The records of `whole` that are held back, and those that are trained on. Requires packed records: a view
/// has ids of its own. Errors: ConfigError if one of the sets would be empty.
DataSets split_validation(std::unique_ptr<RecordSource> whole, const HoldOut& held);

/// *Collective.* How many records of a data set are of each class, by class_of() their targets, which obey
/// the rule; each rank reads its share of the data set. Errors, the same on all ranks: DataError.
std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers);

}  // namespace lockstep
