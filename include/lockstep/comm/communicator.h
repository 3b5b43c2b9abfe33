// The one interface to other ranks. Implementations: MPI, and ranks as threads of one process (for tests and
// for running without a launcher). Every call states whether it is *collective* (all ranks, same order) or
// *local*.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

// Memory that all ranks of a node read and write in place, instead of sending it.

/// One part for each rank of the communicator that it was made with, which must outlive it. Errors:
/// CommError. The destructor is collective, except after an exception, when the others may never come.
class SharedWindow {
 public:
  virtual ~SharedWindow() = default;
  /// *Local.* The bytes that `rank` asked for, zeroed at first, from a 64-byte border on. A rank reads and
  /// writes any part; who writes what between two fences is up to the caller.
  virtual std::span<std::byte> part(int rank) = 0;
  /// *Collective, blocking.* Writes of any rank before it are seen by every rank after it.
  virtual void fence() = 0;
};

enum class DataType { kByte, kInt64, kFloat, kDouble };

/// Bytes of one element.
constexpr Index size_of(DataType type) {
  if (type == DataType::kByte) return 1;
  return type == DataType::kFloat ? 4 : 8;
}

/// A typed view of memory: a count can never be taken for bytes.
struct Buffer {
  void* data = nullptr;
  Index count = 0;
  DataType type = DataType::kByte;

  Index bytes() const { return count * size_of(type); }
};

/// A Buffer that is only read.
struct ConstBuffer {
  const void* data = nullptr;
  Index count = 0;
  DataType type = DataType::kByte;

  ConstBuffer() = default;
  ConstBuffer(const void* d, Index n, DataType t) : data(d), count(n), type(t) {}
  ConstBuffer(const Buffer& b) : data(b.data), count(b.count), type(b.type) {}  // NOLINT: a view narrows
  Index bytes() const { return count * size_of(type); }
};

template <class T>
inline constexpr DataType kDataTypeOf = DataType::kByte;
template <>
inline constexpr DataType kDataTypeOf<Index> = DataType::kInt64;
template <>
inline constexpr DataType kDataTypeOf<float> = DataType::kFloat;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::kDouble;

template <class T, std::size_t kExtent>
Buffer as_buffer(std::span<T, kExtent> values) {
  static_assert(sizeof(T) == 1 || kDataTypeOf<T> != DataType::kByte, "no MPI type for this");
  return {values.data(), std::ssize(values), kDataTypeOf<T>};
}
template <class T, std::size_t kExtent>
ConstBuffer as_buffer(std::span<const T, kExtent> values) {
  static_assert(sizeof(T) == 1 || kDataTypeOf<T> != DataType::kByte, "no MPI type for this");
  return {values.data(), std::ssize(values), kDataTypeOf<T>};
}

/// A message to or from a peer.
struct Send {
  int peer = 0;
  ConstBuffer buffer;
};
struct Receive {
  int peer = 0;
  Buffer buffer;
};

/// An operation under way. It must be waited for before its buffers are touched and before it is destroyed.
class Request {
 public:
  virtual ~Request() = default;
  /// *Local.* Lets it make progress; true once it is complete.
  virtual bool test() = 0;
  /// *Blocking* until it is complete.
  virtual void wait() = 0;
};

/// Errors of every call: CommError with the call, the class and the text.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// *Collective, blocking.*
  virtual void barrier() = 0;
  /// *Collective, blocking.* `buffer` of `root` to all; same count and type everywhere.
  virtual void broadcast(Buffer buffer, int root) = 0;
  /// *Collective, blocking.* Each element becomes its sum over the ranks, in an order that the implementation
  /// chooses.
  virtual void all_reduce_sum(Buffer buffer) = 0;
  /// *Collective.* all_reduce_sum(), started only.
  virtual std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) = 0;
  /// *Collective, blocking.* `mine` of rank r becomes part r of `all`; same count everywhere.
  virtual void all_gather(ConstBuffer mine, Buffer all) = 0;
  /// *Collective.* Starts it in place: `parts[r]` (a range of the elements of `whole`) is filled at rank r
  /// and gets to all. Parts are the same everywhere; they may be empty.
  virtual std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) = 0;
  /// Starts messages between pairs. Not collective: ranks may start exchanges at different moments, between
  /// different collectives. Between two ranks the messages of one channel match in the order in which they
  /// are listed here and in earlier calls; counts and types of a pair must be equal. Not to oneself.
  virtual std::unique_ptr<Request> start_exchange(int channel, std::span<const Send> sends,
                                                  std::span<const Receive> receives) = 0;
  /// start_exchange() of one message.
  std::unique_ptr<Request> start_send(int channel, int peer, ConstBuffer buffer) {
    const Send send{peer, buffer};
    return start_exchange(channel, {&send, 1}, {});
  }
  std::unique_ptr<Request> start_receive(int channel, int peer, Buffer buffer) {
    const Receive receive{peer, buffer};
    return start_exchange(channel, {}, {&receive, 1});
  }

  /// *Collective, blocking.* A communicator of the ranks that give the same color, numbered by `order` and,
  /// where that is equal, by their rank here. It has its own collectives and channels, and may outlive this
  /// one. Both numbers must fit into an int; a color is not negative.
  virtual std::unique_ptr<Communicator> split(Index color, Index order) = 0;
  /// *Collective, blocking.* The ranks that share this rank's memory, in order. With `ranks_per_node` > 0 no
  /// more than so many: each node is taken for several, as if it were that small; 0: nodes as they are.
  virtual std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) = 0;

  /// *Collective, blocking*, over ranks that share memory (split_by_node). Each asks for its own part, of
  /// `bytes` >= 0. Where the memory is not to be had, all throw an AgreedError.
  virtual std::unique_ptr<SharedWindow> shared_window(Index bytes) = 0;

  /// *Local.* For a rank that waits for what another writes into shared memory: lets messages make progress,
  /// and other ranks run. Errors: CommError where another rank is known to have failed.
  virtual void idle() = 0;

  /// *Local.* Whether several threads of this rank may call at once, each on a communicator of its own.
  virtual bool takes_threads() const = 0;

  /// *Local.* Ends the whole job, not only the ranks of this communicator, with this exit code.
  virtual void abort(int exit_code) = 0;
};

}  // namespace lockstep
