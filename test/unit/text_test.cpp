#include "lockstep/base/text.h"
#include "support/common.h"

namespace lockstep::text_test {

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

TEST(Text, TakesTheCaseOfItsModel) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {"JAN", "Feb", "FEB"}, {"Jan", "FEB", "Feb"},  {"jan", "FEB", "feb"}, {"X", "y", "Y"},
      {"x", "Y", "y"},       {"A.M.", "pm", "PM"},   {"1", "31", "31"},     {"st", "ND", "nd"},
      {"Train", "", ""},     {"TRAIN", "té1", "Té1"}};
  for (const auto& [model, text, expected] : cases) EXPECT_EQ(in_case_of(model, text), expected) << model;
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

TEST(NumbersAsText, HaveAsManyDigitsAsTheirKind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(count_text(-2.5), "-3");
  EXPECT_EQ(count_text(1e15), "1,000,000,000,000,000");
  EXPECT_EQ(rate_text(0.8349), "0.83");
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(10.4), "10");
  EXPECT_EQ(rate_text(-3), "-3");
  EXPECT_EQ(short_number(0.3853649), "0.38536");
  for (const double no_number : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(short_number(no_number), "-");
    EXPECT_EQ(count_text(no_number), "-");
    EXPECT_EQ(rate_text(no_number), "-");
  }
  EXPECT_EQ(count_text(-1.01e15), "-");
  EXPECT_EQ(plural(1, "class"), "1 class");
  EXPECT_EQ(plural(0, "class"), "0 classes");
  EXPECT_EQ(plural(2, "batch"), "2 batches");
  EXPECT_EQ(plural(2000, "rank"), "2,000 ranks");
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

TEST(InQuotes, ShowsShortTextsWhole) {
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("abc"), "'abc'");
  EXPECT_EQ(in_quotes("caf\xc3\xa9 \xf0\x9f\x9a\x80"), "'caf\xc3\xa9 \xf0\x9f\x9a\x80'");
  EXPECT_EQ(in_quotes(std::string(80, 'x')), fmt::format("'{}'", std::string(80, 'x')));
}

TEST(InQuotes, ShowsControlCharactersAndStrayBytesAsText) {
  EXPECT_EQ(in_quotes(std::string_view("a\0b", 3)), "'a\\x00b'");
  EXPECT_EQ(in_quotes("\x1b[31mred\r\n\x7f"), "'\\x1b[31mred\\x0d\\x0a\\x7f'");
  EXPECT_EQ(in_quotes("\xc2\x9b"
                      "31m"),
            "'\\xc2\\x9b31m'")
      << "a control sequence without escape character";
  EXPECT_EQ(in_quotes("caf\xe9"), "'caf\\xe9'");
  EXPECT_EQ(in_quotes("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"),
            "'a\\u202eb\\u2066'")
      << "turns the direction of writing";
}

TEST(InQuotes, CutsLongTextsBetweenCharactersAndSaysTheirLength) {
  EXPECT_EQ(in_quotes(std::string(50'000'000, 'x')),
            fmt::format("'{}...' (50,000,000 bytes)", std::string(80, 'x')));
  EXPECT_EQ(in_quotes(std::string(79, 'x') + "\xc3\xa9 more"),
            fmt::format("'{}...' (86 bytes)", std::string(79, 'x')));
  EXPECT_LT(in_quotes(std::string(50'000'000, '\x80')).size(), 400U);
  EXPECT_EQ(excerpt(std::string(100, 'x'), 3), "xxx... (100 bytes)");
}

TEST(Excerpt, CutsNoCharacterInTwoHoweverManyBytesItHas) {
  for (const std::string character : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x9a\x80"}) {
    const std::string text = "ab" + character + " more";
    for (std::size_t max_bytes = 2; max_bytes < text.size(); ++max_bytes) {
      const bool whole = max_bytes >= 2 + character.size();
      EXPECT_EQ(excerpt(text, max_bytes),
                fmt::format("{}... ({} bytes)", text.substr(0, whole ? max_bytes : 2), text.size()));
    }
  }
}

TEST(Listed, HasTheFirstNamesAndTheirNumber) {
  EXPECT_EQ(listed(std::vector<std::string>{"a", "b\n"}), "a, b\\x0a");
  EXPECT_EQ(listed(std::vector<std::string>(200'000, "c"), 3), "c, c, c, ... (200,000 in all)");
  EXPECT_EQ(first_lines(std::vector<std::string>{"a", "b", "c"}, 3), "a\n  b\n  c");
  EXPECT_EQ(first_lines(std::vector<std::string>(1000, "c"), 2), "c\n  c\n  ... (1,000 in all)");
}

}  // namespace lockstep::text_test
