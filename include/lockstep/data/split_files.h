// Which files the config names for a data set.
#pragma once

#include <string>

#include "lockstep/data/dataset.h"
#include "lockstep/data/options.h"

namespace lockstep {

/// The two files of a data set, and the config keys that name them.
struct SplitFiles {
  std::string records;
  std::string labels;
  std::string records_key;  ///< "data.train"
  std::string labels_key;   ///< "data.train_labels"
};

/// The file of a data set: what data.train, data.validation or data.test names; "" for none. Errors:
/// ConfigError if there is no training set.
std::string records_path(const DataOptions& options, Split split);

/// For formats whose labels are in a file of their own. Both paths are empty if the config names no such
/// split. Errors: ConfigError if only one of the two is named, or if it is the training set and neither is.
SplitFiles split_files(const DataOptions& options, Split split);

}  // namespace lockstep
