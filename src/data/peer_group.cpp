#include "lockstep/data/peer_group.h"

namespace lockstep {
namespace {

class Alone final : public PeerGroup {
 public:
  Index rank() const override { return 0; }
  Index size() const override { return 1; }
  void agree(const std::function<void()>& work) override { work(); }
  std::vector<Bytes> all_gather(std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  std::vector<Bytes> all_to_all(const std::vector<Bytes>& send_buffers) override { return send_buffers; }
  std::unique_ptr<NodeMemory> share_on_node(Index) override { return nullptr; }
  bool writes_for_node(Index) const override { return true; }
};

}  // namespace

bool any_rank(PeerGroup& peers, bool mine) {
  const std::byte message{static_cast<unsigned char>(mine)};
  const std::vector<Bytes> all = peers.all_gather({&message, 1});
  return std::ranges::any_of(all, [](const Bytes& bytes) { return bytes.front() != std::byte{0}; });
}

PeerGroup& alone() {
  static Alone one;
  return one;
}

}  // namespace lockstep
