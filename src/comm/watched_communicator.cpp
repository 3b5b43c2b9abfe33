#include "watched_communicator.h"

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

}  // namespace lockstep
