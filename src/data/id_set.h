// A set of record ids that also knows the position of each: how many smaller ids it holds. Two bits of memory
// per record of the data set, and constant time, so a rank can find any record of its share.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/base/types.h"

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

}  // namespace lockstep
