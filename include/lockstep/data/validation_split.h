// Training and validation records from one set of files: a keyed hash of its id decides which a record is, so
// the choice stays the same however the files are read and whatever else is in them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/folds/folds.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct ValidationSplit {
  std::unique_ptr<RecordSource> train;
  std::unique_ptr<RecordSource> validation;
};

/// About `share` of the records of `whole` for validation, the others to train on.
/// Requires packed records: a view has ids of its own. Errors: ConfigError if one of the two would be empty.
ValidationSplit split_validation(std::unique_ptr<RecordSource> whole, double share, std::uint64_t seed);

/// The records of `fold` for validation, and those that it leaves to train on. Requires packed records.
/// `note`: for the user, on how they were chosen, by data.validation; "": by data.fold.
/// Errors: ConfigError if one of the two would be empty.
ValidationSplit split_fold(std::unique_ptr<RecordSource> whole, std::shared_ptr<const FoldAssignment> folds,
                           Index fold, const std::string& note = "");

// How many records of a data set are of each class. Whole numbers, so they are the same on any number of
// ranks.

/// *Collective.* By class_of() their targets, which obey the rule; each rank reads its share of the data set.
/// Errors, the same on all ranks: DataError.
std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers);

}  // namespace lockstep
