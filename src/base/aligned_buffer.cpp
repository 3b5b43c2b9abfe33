#include "lockstep/base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstring>

#include "lockstep/base/memory_limit.h"

namespace lockstep {
namespace {

constexpr Index kHugePage = 2 * 1024 * 1024;

}  // namespace

// Large blocks ask for huge pages, which spare the processor most of its misses in looking addresses up. Only
// for whole ones: no more memory is used than asked for.
void* allocate_zeroed(Index bytes) {
  const Index whole = bytes / kHugePage * kHugePage;
  const Index alignment = whole > 0 ? kHugePage : kAlignmentBytes;
  const auto capacity = static_cast<std::size_t>(round_up(bytes, alignment));
  void* const memory = std::aligned_alloc(static_cast<std::size_t>(alignment), capacity);
  if (memory == nullptr) throw OutOfMemory(bytes);
  if (whole > 0) ::madvise(memory, static_cast<std::size_t>(whole), MADV_HUGEPAGE);
  std::memset(memory, 0, static_cast<std::size_t>(round_up(bytes, kAlignmentBytes)));
  return memory;
}

}  // namespace lockstep
