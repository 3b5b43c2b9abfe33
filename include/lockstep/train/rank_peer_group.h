// The ranks of a communicator as the data layer sees them.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/data/peer_group.h"

namespace lockstep {

class RankPeerGroup final : public PeerGroup {
 public:
  /// The communicator must outlive it.
  explicit RankPeerGroup(Communicator& comm) : comm_(comm) {}

  Index rank() const override { return comm_.rank(); }
  Index size() const override { return comm_.size(); }
  /// Errors: AgreedError.
  void agree(const std::function<void()>& work) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> mine) override;
  std::vector<Bytes> all_to_all(const std::vector<Bytes>& send_buffers) override;
  std::unique_ptr<NodeMemory> share_on_node(Index bytes) override;
  bool writes_for_node(Index rank) const override { return at(writers_, rank) == rank; }

 private:
  Communicator& comm_;
  std::vector<Index> writers_;  // the rank that writes for the node of each
};

}  // namespace lockstep
