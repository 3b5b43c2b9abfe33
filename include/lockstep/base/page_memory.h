// Zeroed memory for an arena of which a rank touches only a part: pages are taken from the system when they
// are first written, and can be given back.
#pragma once

#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

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

 private:
  Scalar* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace lockstep
