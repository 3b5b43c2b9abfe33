// A data set of dense records in binary files: a field of each record of one file holds the features, a field
// of the same or of another file the targets. What a format adds is where they lie.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/inputs/element.h"
#include "lockstep/base/types.h"
#include "lockstep/data/record_source.h"
#include "lockstep/math/matrix.h"
#include "record_file.h"

namespace lockstep {

// How dense records are packed: the features, as bytes (to be scaled to [0, 1]) or as scalars, and then the
// targets as scalars, with the weight behind them if there is one, and then the length.

struct DenseLayout {
  bool byte_features = false;
  Index features = 0;
  Index labels = 0;  ///< targets, and the weight and the length if there is one

  Index feature_bytes() const { return features * (byte_features ? 1 : Index{sizeof(Scalar)}); }
  Index record_bytes() const { return feature_bytes() + labels * Index{sizeof(Scalar)}; }

  /// RecordSource::unpack for such records.
  void unpack(std::span<const std::byte* const> records, Matrix& x, Matrix& targets) const;
};

/// Numbers of one type that lie one after the other in a record.
struct DensePiece {
  Index offset = 0;
  Index count = 1;
  const Element* element = nullptr;
};

/// Numbers that lie one after the other in each record of a file, or in several pieces.
struct DenseField {
  RecordFile file = {};
  Index offset = 0;  ///< bytes before the first number in the record
  Index count = 1;
  const Element* element = nullptr;
  /// Images whose channels lie one after the other are stored so many channels deep; they are turned
  /// round to channels last. 1: as they are.
  Index planes = 1;
  /// `count` numbers in several pieces, for which `offset` and `element` are left open.
  std::vector<DensePiece> pieces = {};

  /// Bytes that stay bytes.
  bool is_byte() const { return pieces.empty() && element->is_byte(); }
};

struct DenseFields {
  Shape shape;  ///< shape of the features
  DenseField features;
  std::optional<DenseField> targets;
  std::optional<DenseField> weights = {};  ///< one number of each record; only with targets
  std::optional<DenseField> lengths = {};  ///< one number of each record, a sequence
  std::optional<Scalar> ignored = {};      ///< a target that means that there is none
};

class DenseSource final : public RecordSource {
 public:
  /// Features, targets and weights must have as many records.
  explicit DenseSource(DenseFields fields);

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override;
  std::vector<std::string> files() const override { return files_; }
  /// The share of padding, where records have lengths.
  std::vector<Note> notes() const override;
  std::vector<Scalar> lengths() const override;
  void unpack(std::span<const Index>, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    layout_.unpack(records, x, targets);
  }

 private:
  DenseFields fields_;
  DenseLayout layout_;
  std::vector<std::string> files_;
};

/// Chunks of `rows` records, of about half a MiB each.
std::vector<Chunk> even_chunks(Index rows, Index record_bytes, bool follow_on);

}  // namespace lockstep
