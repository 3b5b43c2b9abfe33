#include "lockstep/base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(WithCommas, GroupsByThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(650000), "650,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(std::numeric_limits<Index>::max()), "9,223,372,036,854,775,807");
  EXPECT_EQ(with_commas(std::numeric_limits<Index>::min()), "-9,223,372,036,854,775,808");
}

TEST(HumanBytes, TakesTheLargestUnitThatKeepsOne) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(human_bytes(0x1p70), "1048576.0 PiB");
}

TEST(HumanSeconds, ChangesTheUnitAtAMinuteAndAnHour) {
  EXPECT_EQ(human_seconds(0), "0.0 s");
  EXPECT_EQ(human_seconds(4.21), "4.2 s");
  EXPECT_EQ(human_seconds(59.94), "59.9 s");
  EXPECT_EQ(human_seconds(59.96), "1 m 00 s");
  EXPECT_EQ(human_seconds(60), "1 m 00 s");
  EXPECT_EQ(human_seconds(185), "3 m 05 s");
  EXPECT_EQ(human_seconds(3599.4), "59 m 59 s");
  EXPECT_EQ(human_seconds(3599.5), "1 h 00 m");
  EXPECT_EQ(human_seconds(2 * 3600 + 10 * 60), "2 h 10 m");
}

}  // namespace
}  // namespace lockstep
