// A data set of libsvm files. Its features are those that the training data has; where the training data
// counts them from is seen from its smallest index: from 0 if there is a 0, else from 1.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/table/text/text_files.h"
#include "table_source.h"

namespace lockstep {

// One record of a libsvm file:
//
//   record = label { blank index ":" value } [ "#" any ]       indices ascending, each once

struct SparseValue {
  Index index = 0;  ///< number of the feature as the file has it
  Scalar value = 0;
};

struct SparseRow {
  double label = 0;
  bool query = false;  ///< it names the query of a ranking, "qid:3", which is left out
  std::vector<SparseValue> values;
};

/// The schema that is learnt from the training data.
struct SparseSchema {
  Index features = 0;
  Index first_index = 1;
  /// Labels that become classes 0, 1, ..., in the order of ordered_classes(); empty: labels are numbers.
  std::vector<double> classes;
};

std::string to_json(const SparseSchema& schema);
/// Errors: DataError.
SparseSchema parse_sparse_schema(const std::string& json);
/// Nothing if the text is the schema of other data, or "". Errors: as above.
std::optional<SparseSchema> read_sparse_schema(const std::string& text);

/// How rows are packed: all features, or pairs of position and value where that is less.
struct SparsePacking {
  Index features = 0;
  Index max_values = 0;  ///< values in a record
  bool labels = true;

  bool dense() const { return features <= 1 + 2 * max_values; }
  Index record_bytes() const;
  /// Indices beyond the features are left out.
  void pack(const SparseRow& row, Index first_index, Scalar label, std::byte* packed) const;
  void unpack(const std::byte* packed, Scalar* features, Scalar* label) const;
};

class SparseSource final : public TextSource {
 public:
  /// *Collective.* Walks over all records once. Errors, the same on all ranks: ConfigError, DataError.
  explicit SparseSource(const TableRequest& request);

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override;
  std::string schema() const override { return to_json(schema_); }
  std::vector<std::string> files() const override { return text_.paths(); }

 private:
  class Reader;

  void unpack_record(const std::byte* packed, Scalar* features, Scalar* labels) const override {
    packing_.unpack(packed, features, labels);
  }

  TextFiles text_;
  SparseSchema schema_;
  SparsePacking packing_;
};

}  // namespace lockstep
