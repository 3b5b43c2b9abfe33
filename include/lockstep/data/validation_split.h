// Training and validation records from one set of files. Which of the two a record is follows from the seed
// and the records, whatever ranks read them and however the files are read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

/// The number of a fold, from 1 on; 0: a record that is in no validation set.
using FoldNumber = std::int16_t;

/// Which records of the training data are held back for validation.
struct HoldOut {
  double share = 0;  ///< of all records, by a hash of their numbers
  std::uint64_t key = 0;
  /// Not null: of each record the number of its fold, of which `fold` is held back instead.
  std::shared_ptr<const std::vector<FoldNumber>> fold_of = nullptr;
  Index fold = 0;
  bool forward = false;      ///< a fold is validated by models of the folds before it alone
  std::string setting = {};  ///< who holds them back, for messages
  std::string note = {};     ///< for the user, on how many records, classes or groups these are; may be empty

  bool any() const { return share > 0 || fold_of != nullptr; }
  bool holds(Index id) const;
  /// Whether it is trained on; a record may be neither.
  bool leaves(Index id) const;
};

/// The part that data.validation names. Errors: ConfigError, also if there is a file of that name.
std::optional<ValidationPart> part_beside_files(const DataOptions& data);

/// The data as the formats are to open them: the part is no file, and the column that says only to which part
/// a record belongs is no feature, unless the config takes it for one.
DataOptions data_of_files(const DataOptions& data, const ValidationPart& part);

/// *Collective.* The records of the part. `open_whole` opens the training set without anything held back, if
/// that has to be read. Errors, the same on all ranks: ConfigError if these records cannot be divided so;
/// DataError.
HoldOut hold_out(const ValidationPart& part, const DataOptions& data, std::uint64_t seed,
                 const std::function<std::unique_ptr<RecordSource>()>& open_whole, PeerGroup& peers);

struct ValidationSplit {
  std::unique_ptr<RecordSource> train;
  std::unique_ptr<RecordSource> validation;
};

/// The records of `whole` that are held back, and those that are trained on. Requires packed records: a view
/// has ids of its own. Errors: ConfigError if one of the two would be empty.
ValidationSplit split_validation(std::unique_ptr<RecordSource> whole, const HoldOut& held);

/// *Collective.* How many records of a data set are of each class, by class_of() their targets, which obey
/// the rule; each rank reads its share of the data set. Errors, the same on all ranks: DataError.
std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers);

}  // namespace lockstep
