// A data set of libsvm files. Its features are those that the training data has; where the training data
// counts them from is seen from its smallest index: from 0 if there is a 0, else from 1.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/text/text_files.h"
#include "sparse_scan.h"
#include "table_source.h"

namespace lockstep {

/// The schema that is learnt from the training data.
struct SparseSchema {
  Index features = 0;
  Index first_index = 1;
  /// Labels that become classes 0, 1, ...; empty: labels are numbers.
  std::vector<double> classes;
};

std::string to_json(const SparseSchema& schema);
/// Errors: DataError.
SparseSchema parse_sparse_schema(const std::string& json);

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

class SparseSource final : public RecordSource {
 public:
  /// *Collective.* Walks over all records once. Errors, the same on all ranks: ConfigError, DataError.
  explicit SparseSource(const TableRequest& request);

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override;
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override;
  std::string schema() const override { return to_json(schema_); }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::string> rejects() const override { return rejects_; }
  std::span<const Index> skipped() const override { return skipped_; }
  std::vector<std::string> files() const override { return text_.paths(); }

 private:
  TextFiles text_;
  SparseSchema schema_;
  SparsePacking packing_;
  std::vector<Chunk> chunks_;
  DatasetInfo info_;
  std::vector<std::string> notes_;
  std::vector<std::string> rejects_;
  std::vector<Index> skipped_;
};

}  // namespace lockstep
