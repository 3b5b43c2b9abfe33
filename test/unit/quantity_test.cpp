// Times and bandwidths as people write them.
#include "config/command_flags.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Quantity, ReadsTimes) {
  EXPECT_DOUBLE_EQ(*parse_seconds("2us"), 2e-6);
  EXPECT_DOUBLE_EQ(*parse_seconds("500ns"), 5e-7);
  EXPECT_DOUBLE_EQ(*parse_seconds("0.1ms"), 1e-4);
  EXPECT_DOUBLE_EQ(*parse_seconds("1s"), 1);
  EXPECT_DOUBLE_EQ(*parse_seconds("0us"), 0);
  for (const char* text : {"", "2", "us", "2 us", "-1us", "2US", "2m", "nan us", "infs", "2us2"}) {
    EXPECT_FALSE(parse_seconds(text)) << text;
  }
}

TEST(Quantity, ReadsBandwidths) {
  EXPECT_DOUBLE_EQ(*parse_bandwidth("25Gbit"), 25e9 / 8);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("25Gbit/s"), 25e9 / 8);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("100Mbit"), 1.25e7);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("1.5GB"), 1.5e9);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("300MB/s"), 3e8);
  for (const char* text : {"", "25", "0Gbit", "-1Gbit", "25G", "25gbit", "Gbit", "25Gbit/h", "25us"}) {
    EXPECT_FALSE(parse_bandwidth(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep
