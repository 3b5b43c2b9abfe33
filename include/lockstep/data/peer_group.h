// The other ranks as reading data sees them, without knowing how they communicate: each reads a part, and
// what it finds gets to those who need it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

using Bytes = std::vector<std::byte>;

/// Memory that all ranks of a node read. Its destructor is collective over them.
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
  /// *Collective* over the node. What was written before it is read after it.
  virtual void publish() = 0;
};

class PeerGroup {
 public:
  virtual ~PeerGroup() = default;
  virtual Index rank() const = 0;
  virtual Index size() const = 0;

  /// *Collective.* Runs local `work` on each rank; if it fails with an Error anywhere, every rank throws.
  /// Anything that can fail on one rank alone belongs in here, or the others wait for it forever.
  virtual void agree(const std::function<void()>& work) = 0;

  /// *Collective.* The bytes of all ranks, in order; they may differ in length.
  virtual std::vector<Bytes> all_gather(std::span<const std::byte> mine) = 0;

  /// *Collective.* send_buffers[r] goes to rank r. The result is what each rank sent here, in order of rank.
  virtual std::vector<Bytes> all_to_all(const std::vector<Bytes>& send_buffers) = 0;

  /// *Collective.* So many bytes for each node together; the same number everywhere. Null on all ranks if no
  /// node has several of them, or some has not the memory to share.
  virtual std::unique_ptr<NodeMemory> share_on_node(Index bytes) = 0;
  /// *Local*, once memory is shared. Whether this rank writes what its node shares: one of each node does.
  virtual bool writes_for_node(Index rank) const = 0;
};

/// *Collective.* The sum over all ranks of each of so many numbers.
template <class T>
std::vector<T> sum_over_ranks(const std::vector<T>& mine, PeerGroup& peers) {
  std::vector<T> sums(mine.size());
  std::vector<T> theirs(mine.size());
  for (const Bytes& bytes : peers.all_gather(std::as_bytes(std::span(mine)))) {
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    std::ranges::transform(sums, theirs, sums.begin(), std::plus<>());
  }
  return sums;
}

/// *Collective.* Whether it is true on any rank.
bool any_rank(PeerGroup& peers, bool mine);

/// One rank without others. Its agree() throws what the work threw.
PeerGroup& alone();

}  // namespace lockstep
