// What ranks that are threads share: each operation under its number (every rank counts its collectives;
// pairs count their messages). A rank leaves a copy of its contribution when it starts, and takes what it
// needs from the others' copies when it waits. Nobody ever reads another rank's memory, so buffers may be
// used in place. Each communicator has a board of its own; all boards of a run wait on one monitor, so that
// the news of a failed rank reaches every rank, whichever board it waits at.
#pragma once

#include <condition_variable>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/peer_group.h"
#include "support/common.h"

namespace lockstep {

// The way of a message: channel, from, to.
using Path = std::tuple<int, int, int>;

// Guards all boards of a run.
struct Monitor {
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  std::exception_ptr cause;  // of the first failure

  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (!failed) cause = std::move(why);
    failed = true;
    changed.notify_all();
  }
};

class Board {
 public:
  Board(int ranks, Monitor& monitor) : ranks_(ranks), monitor_(monitor) {}
  int ranks() const { return ranks_; }
  Monitor& monitor() { return monitor_; }

  void throw_if_failed() {
    const std::lock_guard lock(monitor_.mutex);
    check_failed();
  }

  void put(std::int64_t collective, int rank, Bytes bytes) {
    const std::lock_guard lock(monitor_.mutex);
    Operation& operation = operations_[collective];
    operation.parts.resize(static_cast<std::size_t>(ranks_));
    at(operation.parts, rank) = std::move(bytes);
    if (++operation.arrived == ranks_) monitor_.changed.notify_all();
  }

  bool complete(std::int64_t collective) {
    const std::lock_guard lock(monitor_.mutex);
    check_failed();
    const auto found = operations_.find(collective);
    return found != operations_.end() && found->second.arrived == ranks_;
  }

  // Waits for all contributions and hands them to `use`; the last rank to do so drops them.
  template <class Use>
  void take(std::int64_t collective, const Use& use) {
    std::unique_lock lock(monitor_.mutex);
    monitor_.changed.wait(lock, [&] { return monitor_.failed || operations_[collective].arrived == ranks_; });
    check_failed();
    Operation& operation = operations_[collective];
    lock.unlock();
    use(std::as_const(operation.parts));
    lock.lock();
    if (++operation.taken == ranks_) operations_.erase(collective);
  }

  void post(const Path& path, Bytes bytes) {
    const std::lock_guard lock(monitor_.mutex);
    messages_[{path, posted_[path]++}] = std::move(bytes);
    monitor_.changed.notify_all();
  }

  // The number under which the next message on this path will be found.
  std::int64_t next_message(const Path& path) {
    const std::lock_guard lock(monitor_.mutex);
    return expected_[path]++;
  }

  bool has_message(const Path& path, std::int64_t number) {
    const std::lock_guard lock(monitor_.mutex);
    check_failed();
    return messages_.contains({path, number});
  }

  Bytes take_message(const Path& path, std::int64_t number) {
    std::unique_lock lock(monitor_.mutex);
    const std::pair key{path, number};
    monitor_.changed.wait(lock, [&] { return monitor_.failed || messages_.contains(key); });
    check_failed();
    return std::move(messages_.extract(key).mapped());
  }

  // One object for the `holders` ranks that name the same collective and color: the first to ask makes it.
  template <class Make>
  auto joint(std::int64_t collective, Index color, int holders, const Make& make) -> decltype(make()) {
    const std::lock_guard lock(monitor_.mutex);
    Joint& joint = joints_[{collective, color}];
    if (!joint.object) joint.object = make();
    const auto object = std::static_pointer_cast<typename decltype(make())::element_type>(joint.object);
    if (++joint.holders == holders) joints_.erase({collective, color});
    return object;
  }

 private:
  struct Operation {
    std::vector<Bytes> parts;
    int arrived = 0;
    int taken = 0;
  };

  struct Joint {
    std::shared_ptr<void> object;
    int holders = 0;
  };

  void check_failed() const {
    if (monitor_.failed) throw CommError("another rank has failed");
  }

  int ranks_;
  Monitor& monitor_;
  std::map<std::int64_t, Operation> operations_;
  std::map<Path, std::int64_t> posted_;
  std::map<Path, std::int64_t> expected_;
  std::map<std::pair<Path, std::int64_t>, Bytes> messages_;
  std::map<std::pair<std::int64_t, Index>, Joint> joints_;
};

// The parts of all ranks; it lives until the last of their windows is gone.
using WindowMemory = std::vector<AlignedBuffer<std::byte>>;

class ThreadWindow final : public SharedWindow {
 public:
  ThreadWindow(Communicator& comm, std::shared_ptr<WindowMemory> memory)
      : comm_(comm), memory_(std::move(memory)) {}

  std::span<std::byte> part(int rank) override { return (*memory_)[static_cast<std::size_t>(rank)].span(); }
  void fence() override { comm_.barrier(); }

 private:
  Communicator& comm_;
  std::shared_ptr<WindowMemory> memory_;
};

}  // namespace lockstep
