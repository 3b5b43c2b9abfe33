// The few sizes of messages that a calibration measures.
#include <gtest/gtest.h>

#include "lockstep/distributed/exchange/calibration.h"

namespace lockstep::calibrated_size_test {
namespace {

// A message is never judged by a smaller one, but for those above the largest that is measured.
TEST(CalibratedSize, IsTheNextPowerOfTwoFromAFewPagesTo4MiB) {
  const Index smallest = calibrated_size(0);
  constexpr Index kLargest = 1 << 20;
  for (const Index count : {Index{1}, smallest - 1, smallest})
    EXPECT_EQ(calibrated_size(count), smallest) << count;
  for (Index size = 2 * smallest; size <= kLargest; size *= 2) {
    for (const Index count : {size / 2 + 1, size - 1, size}) EXPECT_EQ(calibrated_size(count), size) << count;
  }
  for (const Index count : {kLargest + 1, 100 * kLargest})
    EXPECT_EQ(calibrated_size(count), kLargest) << count;
}

}  // namespace
}  // namespace lockstep::calibrated_size_test
