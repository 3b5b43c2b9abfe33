// What ranks that are threads share: each operation under its number (every rank counts its collectives;
// pairs count their messages), and the news that one of them has failed. A rank leaves a copy of its
// contribution when it starts, and takes what it needs from the others' copies when it waits. Nobody ever
// reads another rank's memory, so buffers may be used in place.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/base/errors.h"

namespace lockstep {

using Bytes = std::vector<std::byte>;

// The way of a message: channel, from, to.
using Path = std::tuple<int, int, int>;

class Board {
 public:
  explicit Board(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }

  void put(std::int64_t collective, int rank, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    Operation& operation = operations_[collective];
    operation.parts.resize(static_cast<std::size_t>(ranks_));
    operation.parts[static_cast<std::size_t>(rank)] = std::move(bytes);
    if (++operation.arrived == ranks_) changed_.notify_all();
  }

  bool complete(std::int64_t collective) {
    const std::lock_guard lock(mutex_);
    check_failed();
    const auto found = operations_.find(collective);
    return found != operations_.end() && found->second.arrived == ranks_;
  }

  // Waits for all contributions and hands them to `use`; the last rank to do so drops them.
  template <class Use>
  void take(std::int64_t collective, const Use& use) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || operations_[collective].arrived == ranks_; });
    check_failed();
    Operation& operation = operations_[collective];
    lock.unlock();
    use(std::as_const(operation.parts));
    lock.lock();
    if (++operation.taken == ranks_) operations_.erase(collective);
  }

  void post(const Path& path, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    messages_[{path, posted_[path]++}] = std::move(bytes);
    changed_.notify_all();
  }

  // The number under which the next message on this path will be found.
  std::int64_t next_message(const Path& path) {
    const std::lock_guard lock(mutex_);
    return expected_[path]++;
  }

  bool has_message(const Path& path, std::int64_t number) {
    const std::lock_guard lock(mutex_);
    check_failed();
    return messages_.contains({path, number});
  }

  Bytes take_message(const Path& path, std::int64_t number) {
    std::unique_lock lock(mutex_);
    const std::pair key{path, number};
    changed_.wait(lock, [&] { return failed_ || messages_.contains(key); });
    check_failed();
    return std::move(messages_.extract(key).mapped());
  }

  void fail(std::exception_ptr cause) {
    const std::lock_guard lock(mutex_);
    if (!failed_) cause_ = std::move(cause);
    failed_ = true;
    changed_.notify_all();
  }

  std::exception_ptr cause() const { return cause_; }

 private:
  struct Operation {
    std::vector<Bytes> parts;
    int arrived = 0;
    int taken = 0;
  };

  void check_failed() const {
    if (failed_) throw CommError("another rank has failed");
  }

  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Operation> operations_;
  std::map<Path, std::int64_t> posted_;
  std::map<Path, std::int64_t> expected_;
  std::map<std::pair<Path, std::int64_t>, Bytes> messages_;
  bool failed_ = false;
  std::exception_ptr cause_;
};

}  // namespace lockstep
