// A block of zeroed memory of a fixed size that starts on a 64-byte border: arenas, activations, batches.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>

#include "lockstep/base/types.h"

namespace lockstep {

/// Zeroed memory to be freed by std::free. Errors: std::bad_alloc.
void* allocate_zeroed(Index bytes);

template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(Index size) : size_(size) {
    if (size == 0) return;
    data_.reset(static_cast<T*>(allocate_zeroed(size * Index{sizeof(T)})));
  }

  Index size() const { return size_; }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::span<T> span() { return {data_.get(), static_cast<std::size_t>(size_)}; }
  std::span<const T> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  Index size_ = 0;
};

/// The elements of `whole` that `range` names.
template <class T>
std::span<T> part(std::span<T> whole, Range range) {
  return whole.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

// Zeroed memory for an arena of which a rank touches only a part: pages are taken from the system when they
// are first written, and can be given back.

class PageMemory {
 public:
  PageMemory() = default;
  /// Errors: OutOfMemory.
  explicit PageMemory(Index size);
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;

  Index size() const { return size_; }
  std::span<Scalar> span() const { return {data_, static_cast<std::size_t>(size_)}; }
  /// Gives back the pages that lie in the range; what they held is zero from now on.
  void release(Range range);
  /// Asks for huge pages, which spare the processor most of its misses in looking addresses up.
  void ask_for_huge_pages();

 private:
  Scalar* data_ = nullptr;
  Index size_ = 0;
};

// Asking for memory ahead of its use, line by line, where the processor would not guess it.

/// Memory that is read soon.
inline void prefetch_to_read(std::span<const Scalar> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kAlignment) __builtin_prefetch(memory.data() + i);
}

/// Memory that is written soon. What other ranks have read would be fetched twice: as a copy when it is read,
/// and as the only one when it is written.
inline void prefetch_to_write(std::span<const Scalar> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kAlignment) __builtin_prefetch(memory.data() + i, 1);
}

}  // namespace lockstep
