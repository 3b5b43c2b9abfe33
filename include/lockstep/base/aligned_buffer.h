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

}  // namespace lockstep
