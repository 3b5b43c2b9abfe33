#include "lockstep/base/text.h"

#include <fmt/format.h>
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

TEST(Text, ARateIsAWholeNumberFromTenOnAndRounded) {
  const std::vector<std::pair<double, std::string>> cases{
      {0.4567, "0.46"}, {9.94, "9.9"}, {10.4, "10"}, {10.6, "11"}, {1234.5678, "1,235"}};
  for (const auto& [rate, text] : cases) EXPECT_EQ(rate_text(rate), text);
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

// The borders of table 3-7 of the Unicode standard: what stands outside is no character.
TEST(Utf8, HoldsNoOverlongFormsNorSurrogates) {
  const auto length = [](std::string_view bytes) { return utf8_length(bytes); };
  EXPECT_EQ(length("a"), 1U);
  EXPECT_EQ(length("\xc2\x80"), 2U);
  EXPECT_EQ(length("\xdf\xbf"), 2U);
  EXPECT_EQ(length("\xe0\xa0\x80"), 3U);
  EXPECT_EQ(length("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(length("\xee\x80\x80"), 3U);
  EXPECT_EQ(length("\xf0\x90\x80\x80"), 4U);
  EXPECT_EQ(length("\xf4\x8f\xbf\xbf"), 4U);
  for (const std::string_view wrong :
       {"\x80", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xe0\x9f\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xe1\x80",
        "\xe1\x80\xc0", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf1\x80\x80"}) {
    EXPECT_EQ(length(wrong), 0U);
    EXPECT_FALSE(is_text(fmt::format("a{}b", wrong)));
  }
}

}  // namespace
}  // namespace lockstep
