// Memory that all ranks of a node read and write in place, instead of sending it.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

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

}  // namespace lockstep
