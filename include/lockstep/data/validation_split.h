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

/// The number of a fold, from 1 on; 0: a record that is in no fold; below 0: it is not trained on.
using FoldNumber = std::int16_t;
inline constexpr FoldNumber kTestFold = -1;    ///< it is in the test set
inline constexpr FoldNumber kUnusedFold = -2;  ///< it is in no set, as it comes after one that is held back
inline constexpr FoldNumber kNoFold = -3;      ///< of no record

/// Which records of the training data are held back for validation or test.
struct HoldOut {
  double share = 0;  ///< of all records, by a hash of their numbers
  std::uint64_t key = 0;
  /// Not null: of each record the number of its fold, of which `fold` is held back instead.
  std::shared_ptr<const std::vector<FoldNumber>> fold_of = nullptr;
  Index fold = 0;
  bool forward = false;      ///< a fold is validated by models of the folds before it alone
  std::string setting = {};  ///< who holds them back, for messages
  Note note = {};            ///< on how many records, classes or groups these are; may be empty
  Note test_note = {};       ///< the same of the test set

  bool any() const { return share > 0 || fold_of != nullptr; }
  /// Whether it is in the validation set.
  bool holds(Index id) const;
  bool tests(Index id) const { return fold_of != nullptr && at(*fold_of, id) == kTestFold; }
  /// Whether it is trained on; a record may be in no set.
  bool leaves(Index id) const;
  /// Whether it is in this set.
  bool takes(Split split, Index id) const {
    return split == Split::kTrain ? leaves(id) : split == Split::kTest ? tests(id) : holds(id);
  }
};

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

/// *Collective.* The records of the parts: those of the test set are chosen first, those of the validation
/// set from the others. `open_whole` opens the training set without anything held back, if that has to be
/// read. Errors, the same on all ranks: ConfigError if these records cannot be divided so; DataError.
HoldOut hold_out(const DataParts& parts, const DataOptions& data, std::uint64_t seed,
                 const std::function<std::unique_ptr<RecordSource>()>& open_whole, PeerGroup& peers);

/// Null for a set that there is not.
struct DataSets {
  std::unique_ptr<RecordSource> train = nullptr;
  std::unique_ptr<RecordSource> validation = nullptr;
  std::unique_ptr<RecordSource> test = nullptr;
};

/// The records of `whole` that are held back, and those that are trained on. Requires packed records: a view
/// has ids of its own. Errors: ConfigError if one of the sets would be empty.
DataSets split_validation(std::unique_ptr<RecordSource> whole, const HoldOut& held);

/// *Collective.* How many records of a data set are of each class, by class_of() their targets, which obey
/// the rule; each rank reads its share of the data set. Errors, the same on all ranks: DataError.
std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers);

}  // namespace lockstep
