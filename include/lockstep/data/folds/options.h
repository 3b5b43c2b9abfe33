// Options of folds. Defaults stand here and nowhere else.
#pragma once

#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// The most folds: a fold is kept in 16 bits.
inline constexpr Index kMaxFolds = 1000;

struct FoldOptions {
  Index folds = 0;            ///< 0: the training samples are not divided
  Index fold = 0;             ///< the one that is the validation set, from 1 on
  std::string by = "record";  ///< "record", "class", "group", "time" or "column"
  std::string column = "";

  bool reads_column() const { return by != "record" && by != "class"; }
};

}  // namespace lockstep
