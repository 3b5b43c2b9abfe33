// One record of a libsvm file:
//
//   record = label { blank index ":" value } [ "#" any ]       indices ascending, each once
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/text/fields.h"

namespace lockstep {

struct SparseValue {
  Index index = 0;  ///< number of the feature as the file has it
  Scalar value = 0;
};

struct SparseRow {
  double label = 0;
  bool query = false;  ///< it names the query of a ranking, "qid:3", which is left out
  std::vector<SparseValue> values;
};

/// Parses a record. Errors: BadRecord, column -1.
void parse_sparse_row(std::string_view record, SparseRow& row);

}  // namespace lockstep
