// Texts of users in messages: short, and harmless to a terminal.
#include "lockstep/base/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::quoted_test {
namespace {

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

}  // namespace
}  // namespace lockstep::quoted_test
