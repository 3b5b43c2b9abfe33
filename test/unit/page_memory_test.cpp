// Memory of which only what is touched is taken.
#include "lockstep/base/aligned_buffer.h"
#include "support/common.h"

#include <sys/mman.h>
#include <unistd.h>

namespace lockstep::page_memory_test {

Index page() {
  return ::sysconf(_SC_PAGESIZE) / Index{sizeof(Scalar)};
}

// Pages of it that are in memory.
Index resident(const PageMemory& memory) {
  std::vector<unsigned char> pages(static_cast<std::size_t>(divide_up(memory.size(), page())));
  const auto bytes = static_cast<std::size_t>(memory.size()) * sizeof(Scalar);
  EXPECT_EQ(::mincore(memory.span().data(), bytes, pages.data()), 0);
  return std::ranges::count_if(pages, [](unsigned char flags) { return (flags & 1U) != 0; });
}

TEST(PageMemory, IsTakenWhereItIsTouchedAndGivenBack) {
  PageMemory memory(100 * page());
  EXPECT_EQ(resident(memory), 0);
  const std::span<Scalar> values = memory.span();
  std::ranges::fill(
      values.subspan(static_cast<std::size_t>(10 * page()), static_cast<std::size_t>(5 * page())), Scalar{1});
  EXPECT_EQ(resident(memory), 5);
  // Pages that lie in the range as a whole.
  memory.release({11 * page() + 1, 14 * page() - 1});
  EXPECT_EQ(resident(memory), 4);
  EXPECT_EQ(at(values, 12 * page()), 0);
  EXPECT_EQ(at(values, 11 * page() + 1), 1);
  EXPECT_EQ(at(values, 14 * page() - 1), 1);
}

TEST(PageMemory, MayBeEmptyAndMoves) {
  PageMemory empty(0);
  EXPECT_TRUE(empty.span().empty());
  PageMemory memory(page());
  memory.span().front() = 3;
  const PageMemory moved = std::move(memory);
  EXPECT_EQ(moved.span().front(), 3);
}

}  // namespace lockstep::page_memory_test
