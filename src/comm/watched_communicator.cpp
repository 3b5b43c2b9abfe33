#include "watched_communicator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// One thread writes: a load and a store, not an addition that locks.
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

/// Leaves also when the call throws.
class Waiting {
 public:
  Waiting(Marks& marks, Call call, Index number, Index communicator) : marks_(marks) {
    marks_.enter(call, number, communicator);
  }
  ~Waiting() { marks_.leave(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Marks& marks_;
};

class WatchedRequest final : public Request {
 public:
  WatchedRequest(std::unique_ptr<Request> inner, Marks& marks, Index number, Index communicator)
      : inner_(std::move(inner)), marks_(marks), number_(number), communicator_(communicator) {}

  bool test() override { return inner_->test(); }
  void wait() override {
    const Waiting waiting(marks_, Call::kWait, number_, communicator_);
    inner_->wait();
  }

 private:
  std::unique_ptr<Request> inner_;
  Marks& marks_;
  Index number_;
  Index communicator_;
};

class WatchedWindow final : public SharedWindow {
 public:
  WatchedWindow(std::unique_ptr<SharedWindow> inner, Marks& marks, Index communicator)
      : inner_(std::move(inner)), marks_(marks), communicator_(communicator) {}

  ~WatchedWindow() override {
    const Waiting waiting(marks_, Call::kWindow, fences_, communicator_);
    inner_.reset();
  }
  WatchedWindow(const WatchedWindow&) = delete;
  WatchedWindow& operator=(const WatchedWindow&) = delete;

  std::span<std::byte> part(int rank) override { return inner_->part(rank); }
  void fence() override {
    const Waiting waiting(marks_, Call::kFence, ++fences_, communicator_);
    inner_->fence();
  }

 private:
  std::unique_ptr<SharedWindow> inner_;
  Marks& marks_;
  Index communicator_;
  Index fences_ = 0;
};

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

void Marks::get_on() {
  activity_.marks.store(activity_.marks.load(kRelaxed) + 1, kRelaxed);
}

void Marks::enter(Call call, Index number, Index communicator) {
  if (!concerns_me()) return;
  activity_.call_number.store(number, kRelaxed);
  activity_.communicator.store(communicator, kRelaxed);
  activity_.call.store(call, kRelaxed);
  get_on();
}

void Marks::leave() {
  if (!concerns_me()) return;
  activity_.call.store(Call::kNone, kRelaxed);
  get_on();
}

// Called again and again while nothing happens: only the first time is a step ahead.
void Marks::idle(Index communicator) {
  if (activity_.call.load(kRelaxed) != Call::kIdle) enter(Call::kIdle, 0, communicator);
}

void Marks::note_phase(Phase phase, Index bucket) {
  if (!concerns_me()) return;
  activity_.call.store(Call::kNone, kRelaxed);
  activity_.phase.store(phase, kRelaxed);
  if (bucket >= 0) activity_.bucket.store(bucket, kRelaxed);
  get_on();
}

void Marks::note_step(Index step, Range samples) {
  if (!concerns_me()) return;
  activity_.step.store(step, kRelaxed);
  activity_.first_sample.store(samples.begin, kRelaxed);
  activity_.end_sample.store(samples.end, kRelaxed);
  activity_.bucket.store(-1, kRelaxed);
  get_on();
}

void Marks::note_stage(Index stage) {
  if (concerns_me()) activity_.stage.store(stage, kRelaxed);
}

template <class Work>
auto WatchedCommunicator::waiting(Call call, const Work& work) {
  const Waiting scope(marks_, call, ++calls_, number_);
  return work();
}

void WatchedCommunicator::barrier() {
  waiting(Call::kBarrier, [&] { inner().barrier(); });
}

void WatchedCommunicator::broadcast(Buffer buffer, int root) {
  waiting(Call::kBroadcast, [&] { inner().broadcast(buffer, root); });
}

void WatchedCommunicator::all_reduce_sum(Buffer buffer) {
  waiting(Call::kAllReduce, [&] { inner().all_reduce_sum(buffer); });
}

void WatchedCommunicator::all_gather(ConstBuffer mine, Buffer all) {
  waiting(Call::kAllGather, [&] { inner().all_gather(mine, all); });
}

std::unique_ptr<Request> WatchedCommunicator::start_all_reduce_sum(Buffer buffer) {
  return std::make_unique<WatchedRequest>(inner().start_all_reduce_sum(buffer), marks_, ++calls_, number_);
}

std::unique_ptr<Request> WatchedCommunicator::start_all_gather(Buffer whole, std::span<const Range> parts) {
  return std::make_unique<WatchedRequest>(inner().start_all_gather(whole, parts), marks_, ++calls_, number_);
}

// Pairs exchange at different moments: the number would mean nothing.
std::unique_ptr<Request> WatchedCommunicator::start_exchange(int channel, std::span<const Send> sends,
                                                             std::span<const Receive> receives) {
  return std::make_unique<WatchedRequest>(inner().start_exchange(channel, sends, receives), marks_, 0,
                                          number_);
}

std::unique_ptr<Communicator> WatchedCommunicator::split(Index color, Index order) {
  return waiting(Call::kSplit, [&]() -> std::unique_ptr<Communicator> {
    return std::make_unique<WatchedCommunicator>(inner().split(color, order), marks_);
  });
}

std::unique_ptr<Communicator> WatchedCommunicator::split_by_node(Index ranks_per_node) {
  return waiting(Call::kSplit, [&]() -> std::unique_ptr<Communicator> {
    return std::make_unique<WatchedCommunicator>(inner().split_by_node(ranks_per_node), marks_);
  });
}

std::unique_ptr<SharedWindow> WatchedCommunicator::shared_window(Index bytes) {
  return waiting(Call::kWindow, [&]() -> std::unique_ptr<SharedWindow> {
    return std::make_unique<WatchedWindow>(inner().shared_window(bytes), marks_, number_);
  });
}

void WatchedCommunicator::idle() {
  marks_.idle(number_);
  inner().idle();
}

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
