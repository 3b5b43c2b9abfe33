#include "node_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

static_assert(std::atomic<double>::is_always_lock_free && std::atomic<Index>::is_always_lock_free,
              "shared between processes");

constexpr std::size_t kHeadBytes = 64;
static_assert(sizeof(NodeBoard::Head) <= kHeadBytes);

std::size_t bytes_for(int slots) {
  return kHeadBytes + static_cast<std::size_t>(slots) * sizeof(NodeBoard::Slot);
}

// Rank 0's file, opened by each rank through /proc; -1 where that fails.
int open_shared(Communicator& node, std::size_t bytes) {
  int mine = -1;
  Index where[] = {::getpid(), -1};
  if (node.rank() == 0) {
    mine = ::memfd_create("lockstep-watch", MFD_CLOEXEC);
    if (mine >= 0 && ::ftruncate(mine, static_cast<off_t>(bytes)) == 0) where[1] = mine;
  }
  node.broadcast(as_buffer(std::span(where)), 0);
  if (node.rank() != 0 && where[1] >= 0) {
    mine = ::open(fmt::format("/proc/{}/fd/{}", where[0], where[1]).c_str(), O_RDWR | O_CLOEXEC);
  }
  Index failed = mine < 0 ? 1 : 0;
  node.all_reduce_sum(as_buffer(std::span(&failed, 1)));
  if (failed == 0 || mine < 0) return mine;
  ::close(mine);
  return -1;
}

}  // namespace

NodeBoard::NodeBoard(Communicator& node, int rank) {
  int ranks = node.size();
  const int file = open_shared(node, bytes_for(ranks));
  if (file < 0) ranks = 1;
  own_ = file < 0 ? 0 : static_cast<std::size_t>(node.rank());
  bytes_ = bytes_for(ranks);
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kind, file, 0);
  if (memory_ == MAP_FAILED) throw CommError("mmap: no memory for the watchdog's board");
  auto* slots = reinterpret_cast<Slot*>(static_cast<std::byte*>(memory_) + kHeadBytes);
  slots_ = std::span(slots, static_cast<std::size_t>(ranks));
  head_ = static_cast<Head*>(memory_);
  if (own_ == 0) new (memory_) Head;
  new (&mine()) Slot;
  mine().rank = rank;
  mine().pid = ::getpid();
  node.barrier();  // everybody has opened and filled it
  if (file >= 0) ::close(file);
}

NodeBoard::~NodeBoard() {
  ::munmap(memory_, bytes_);
}

}  // namespace lockstep
