#include "lockstep/base/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "lockstep/base/process.h"

namespace lockstep {

constexpr Index kHugePage = 2 * 1024 * 1024;

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

PageMemory::PageMemory(Index size) : size_(size) {
  if (size == 0) return;
  const auto bytes = static_cast<std::size_t>(size) * sizeof(Scalar);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory(static_cast<Index>(bytes));
  data_ = static_cast<Scalar*>(memory);
}

PageMemory::~PageMemory() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_) * sizeof(Scalar));
}

PageMemory::PageMemory(PageMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void PageMemory::ask_for_huge_pages() {
  if (data_ != nullptr) ::madvise(data_, static_cast<std::size_t>(size_) * sizeof(Scalar), MADV_HUGEPAGE);
}

void PageMemory::release(Range range) {
  const Index page = ::sysconf(_SC_PAGESIZE) / Index{sizeof(Scalar)};
  const Index begin = round_up(range.begin, page);
  const Index end = range.end / page * page;
  if (begin >= end) return;
  ::madvise(data_ + begin, static_cast<std::size_t>(end - begin) * sizeof(Scalar), MADV_DONTNEED);
}

}  // namespace lockstep
