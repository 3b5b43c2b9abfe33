// Which records of the training data are held back for validation or test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/options.h"
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

}  // namespace lockstep
