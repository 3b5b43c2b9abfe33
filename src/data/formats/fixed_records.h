// Files without a header: records of a known size, one after the other.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dense_source.h"
#include "lockstep/data/record_source.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// The position of numbers in a record; as in DenseField.
struct FixedField {
  Index offset = 0;
  Index count = 1;
  const Element* element = nullptr;
  Index planes = 1;
};

struct FixedRecords {
  Index record_bytes = 0;
  Shape shape;  ///< shape of the features
  FixedField features;
  std::optional<FixedField> targets;
};

/// Errors: DataError if there is no such file, or it has no whole number of records.
std::unique_ptr<RecordSource> open_fixed_records(const std::string& path, const FixedRecords& records,
                                                 bool with_targets);

}  // namespace lockstep
