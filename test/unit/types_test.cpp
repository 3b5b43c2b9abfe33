#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::types_test {

TEST(SplitEvenly, CoversTheWholeWithoutOverlapAndEvenly) {
  for (Index total = 0; total <= 70; ++total)
    for (Index parts = 1; parts <= 9; ++parts)
      for (const Index alignment : {1, 16}) {
        Index end = 0;
        for (Index part = 0; part < parts; ++part) {
          const Range range = split_evenly(total, parts, part, alignment);
          EXPECT_EQ(range.begin, end);
          EXPECT_LE(range.size(), (total / parts / alignment + 1) * alignment);
          end = range.end;
        }
        EXPECT_EQ(end, total);
      }
}

TEST(Range, Intersections) {
  EXPECT_EQ(intersect({0, 10}, {5, 20}), (Range{5, 10}));
  EXPECT_TRUE(intersect({0, 5}, {7, 20}).empty());
  EXPECT_EQ(round_up(17, 16), 32);
  EXPECT_EQ(round_up(32, 16), 32);
}

TEST(FirstIndex, IsWhereThePredicateTurnsFalse) {
  for (Index begin = -3; begin <= 3; ++begin)
    for (Index end = begin - 1; end <= begin + 9; ++end) {
      for (Index turn = begin; turn <= end; ++turn) {
        EXPECT_EQ(first_index({begin, end}, [&](Index i) { return i < turn; }), turn);
      }
      EXPECT_EQ(first_index({begin, end}, [](Index) { return true; }), end);
    }
}

}  // namespace lockstep::types_test
