#include "lockstep/train/rank_peer_group.h"

#include <algorithm>
#include <utility>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr int kSendBuffers = 0;  // channel

// A shared window whose first rank has all of it.
class WindowMemory final : public NodeMemory {
 public:
  WindowMemory(std::unique_ptr<Communicator> node, Index bytes)
      : node_(std::move(node)), window_(node_->shared_window(node_->rank() == 0 ? bytes : 0)) {}
  std::span<std::byte> bytes() override { return window_->part(0); }
  void publish() override { window_->fence(); }

 private:
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<SharedWindow> window_;  // goes before the communicator
};

}  // namespace

void RankPeerGroup::agree(const std::function<void()>& work) {
  lockstep::agree(comm_, work);
}

std::vector<Bytes> RankPeerGroup::all_gather(std::span<const std::byte> mine) {
  return all_to_all(std::vector<Bytes>(static_cast<std::size_t>(size()), Bytes(mine.begin(), mine.end())));
}

std::vector<Bytes> RankPeerGroup::all_to_all(const std::vector<Bytes>& send_buffers) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  std::vector<Index> lengths;
  for (const Bytes& buffer : send_buffers) lengths.push_back(std::ssize(buffer));
  std::vector<Index> all(ranks * ranks);
  comm_.all_gather(as_buffer(std::span<const Index>(lengths)), as_buffer(std::span(all)));

  std::vector<Bytes> arrived(ranks);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    arrived[peer].resize(static_cast<std::size_t>(all[peer * ranks + me]));
    if (peer == me) {
      arrived[peer] = send_buffers[peer];
      continue;
    }
    if (!send_buffers[peer].empty())
      sends.push_back({static_cast<int>(peer), as_buffer(std::span(send_buffers[peer]))});
    if (!arrived[peer].empty())
      receives.push_back({static_cast<int>(peer), as_buffer(std::span(arrived[peer]))});
  }
  comm_.start_exchange(kSendBuffers, sends, receives)->wait();
  return arrived;
}

std::unique_ptr<NodeMemory> RankPeerGroup::share_on_node(Index bytes) {
  std::unique_ptr<Communicator> node = comm_.split_by_node(0);
  writers_ = gather_numbers(comm_, broadcast_value(*node, Index{rank()}));
  Index company = node->size() - 1;
  comm_.all_reduce_sum(as_buffer(std::span(&company, 1)));
  if (company == 0) return nullptr;

  std::unique_ptr<NodeMemory> memory;
  Index failed = 0;
  try {
    memory = std::make_unique<WindowMemory>(std::move(node), bytes);
  } catch (const AgreedError&) {  // thrown on all ranks of the node
    failed = 1;
  }
  comm_.all_reduce_sum(as_buffer(std::span(&failed, 1)));
  if (failed > 0) memory.reset();
  return memory;
}

}  // namespace lockstep
