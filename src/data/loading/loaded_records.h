// Packed records in memory, one after the other in order of id.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

// A set of record ids that also knows the position of each: how many smaller ids it holds. Two bits of memory
// per record of the data set, and constant time, so a rank can find any record of its share.
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

class LoadedRecords final : public Records {
 public:
  /// Memory for the records `ids` of the source, which must outlive it, or for a part of each. Requires
  /// packed records. `shared`: where the node keeps one copy; null: memory of its own.
  LoadedRecords(const RecordSource& source, IdSet ids, std::unique_ptr<NodeMemory> shared,
                RecordPart part = RecordPart::kAll);

  /// The memory of one record, of its last record_bytes() bytes; to be filled before anyone gathers.
  /// Requires that it is one of them.
  std::span<std::byte> storage_of(Index id);
  Index record_bytes() const { return record_bytes_; }

  Index rows() const override { return ids_.size(); }
  Index bytes() const override { return ids_.bytes() + std::ssize(packed_); }
  /// *Collective* over the node, once all positions are filled.
  void publish();
  bool is_shared() const { return shared_ != nullptr; }
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override;

 private:
  void gather_targets(std::span<const Index> ids, Matrix& targets) const;

  const RecordSource& source_;
  IdSet ids_;
  RecordPart part_;
  Index record_bytes_;  // of the part
  std::unique_ptr<NodeMemory> shared_;
  PageMemory own_;               // grows as records come
  std::span<std::byte> packed_;  // in one of these
};

}  // namespace lockstep
