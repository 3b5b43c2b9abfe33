// A set of record ids that also knows the position of each: how many smaller ids it holds. Two bits of memory
// per record of the data set, and constant time, so a rank can find any record of its share.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/base/types.h"
#include "lockstep/data/folds/folds.h"

namespace lockstep {

class IdSet {
 public:
  IdSet() = default;
  /// The ids in [0, rows) that are wanted.
  IdSet(Index rows, const std::function<bool(Index)>& wanted);

  Index size() const { return size_; }
  Index bytes() const { return static_cast<Index>(blocks_.size() * sizeof(Block)); }
  /// Requires 0 <= id < rows.
  bool contains(Index id) const { return (block(id).members >> (id % 64) & 1) != 0; }
  /// How many smaller ids are in the set. Requires contains(id).
  Index position(Index id) const {
    assert(contains(id));
    const std::uint64_t smaller = block(id).members & ((std::uint64_t{1} << (id % 64)) - 1);
    return block(id).before + std::popcount(smaller);
  }

 private:
  // 64 ids, and how many members come before them.
  struct Block {
    std::uint64_t members = 0;
    Index before = 0;
  };
  const Block& block(Index id) const { return at(blocks_, id / 64); }

  std::vector<Block> blocks_;
  Index size_ = 0;
};

// A number that looks random for each record id: which records are held back for validation, and what proves
// that each was seen.

/// SplitMix64 once for the key and once for the id.
inline std::uint64_t id_hash(std::uint64_t key, Index id) {
  const std::uint64_t mixed = mix_bits(key + kGoldenStep);
  return mix_bits((mixed ^ static_cast<std::uint64_t>(id)) + kGoldenStep);
}

/// Which records of the training data are held back for validation.
struct HoldOut {
  double share = 0;  ///< share of all records
  std::uint64_t key = 0;
  std::shared_ptr<const FoldAssignment> folds = nullptr;  ///< not null: `fold` is held back instead
  Index fold = 0;

  bool any() const { return share > 0 || folds != nullptr; }
  bool holds(Index id) const {
    if (folds) return folds->validates(fold, id);
    return static_cast<double>(id_hash(key, id) >> 11) * 0x1p-53 < share;
  }
  /// Whether it is trained on; a record may be neither.
  bool leaves(Index id) const { return folds ? folds->trains(fold, id) : !holds(id); }
};

}  // namespace lockstep
