// The labels of the training data as people know them: by name, and where they are categories, by their
// values.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/table/values/schema.h"

namespace lockstep {

struct TargetLabel {
  std::string name;
  std::vector<std::string> classes = {};  ///< by class number; empty: it is a number
};

/// One for each target, in the order in which a record has them: numbers come first, then categories.
std::vector<TargetLabel> target_labels(const TableSchema& schema);

/// Reads them from a saved schema; none from "". Errors: DataError.
std::vector<TargetLabel> read_target_labels(const std::string& json);

}  // namespace lockstep
