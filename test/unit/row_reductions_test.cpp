// Many numbers to one: each counts, whether it is taken side by side with others or left over beyond them.
#include "nn/losses/row_reductions.h"

#include "lockstep/math/kernels.h"
#include "support/common.h"

namespace lockstep::row_reductions_test {

// Rows of ones of all lengths to a few times what is taken at once, with another number at each place.
void for_each_row(Scalar number, const std::function<void(const std::vector<Scalar>&)>& check) {
  for (std::size_t size = 1; size <= 70; ++size)
    for (std::size_t place = 0; place < size; ++place) {
      SCOPED_TRACE(testing::Message() << number << " at place " << place << " of " << size);
      std::vector<Scalar> row(size, 1);
      row[place] = number;
      check(row);
    }
}

double others(const std::vector<Scalar>& row) {
  return static_cast<double>(row.size()) - 1;
}

TEST(RowReductions, TheSumHasEveryNumber) {
  for_each_row(5, [](const std::vector<Scalar>& row) { EXPECT_EQ(row_sum(row), others(row) + 5); });
}

TEST(RowReductions, TheLargestIsFoundWhereverItIs) {
  for_each_row(5, [](const std::vector<Scalar>& row) { EXPECT_EQ(row_max(row), 5); });
  for_each_row(-5, [](const std::vector<Scalar>& row) { EXPECT_EQ(row_max(row), row.size() == 1 ? -5 : 1); });
}

TEST(RowReductions, TheSumOfSquaresHasEveryNumber) {
  for_each_row(-3, [](const std::vector<Scalar>& row) {
    std::array<double, 1> squares = {};
    sum_squares_of_blocks(row, squares);
    EXPECT_EQ(squares.front(), others(row) + 9);
  });
}

TEST(RowReductions, ANumberBeyondTheLimitIsFoundWhereverItIs) {
  for (const Scalar bad :
       {Scalar{-7}, Scalar{7}, std::numeric_limits<Scalar>::infinity(),
        -std::numeric_limits<Scalar>::infinity(), std::numeric_limits<Scalar>::quiet_NaN()}) {
    for_each_row(bad, [bad](const std::vector<Scalar>& row) {
      EXPECT_FALSE(all_within(row, 6));
      EXPECT_EQ(all_within(row, 7), std::abs(bad) == 7);
      EXPECT_EQ(all_finite(row), std::isfinite(bad));
    });
  }
}

}  // namespace lockstep::row_reductions_test
