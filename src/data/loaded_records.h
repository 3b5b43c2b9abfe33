// Packed records in memory, one after the other in order of id.
#pragma once

#include <vector>

#include "id_set.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/records.h"

namespace lockstep {

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
  AlignedBuffer<std::byte> own_;
  std::span<std::byte> packed_;  // one of these
};

}  // namespace lockstep
