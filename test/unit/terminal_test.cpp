// Lines are broken where they are wider than the terminal, and nowhere else.
#include "lockstep/base/terminal.h"
#include "support/common.h"

namespace lockstep::terminal_test {

TEST(WrapLines, LeavesAloneWhatFits) {
  for (const char* text : {"", "a", "one two three", "one  two", "  one", "one two three\n\nfour\n"})
    EXPECT_EQ(wrap_lines(text, 20), text);
  EXPECT_EQ(wrap_lines(std::string(20, 'x'), 20), std::string(20, 'x'));
}

TEST(WrapLines, BreaksAtSpacesAndIndentsWhatGoesOn) {
  EXPECT_EQ(wrap_lines("one two three four five", 10), "one two\n  three\n  four\n  five");
  EXPECT_EQ(wrap_lines("one two   three", 8), "one two\n  three");
  EXPECT_EQ(wrap_lines("first line is long\nsecond", 12), "first line\n  is long\nsecond");
}

TEST(WrapLines, LeavesAWordWholeThatIsTooWide) {
  EXPECT_EQ(wrap_lines("at /a/very/long/path it is", 10), "at\n  /a/very/long/path\n  it is");
  EXPECT_EQ(wrap_lines("/a/very/long/path", 10), "/a/very/long/path");
}

TEST(WrapLines, CountsWhatStandsBeforeTheFirstLineAndCharactersInsteadOfBytes) {
  EXPECT_EQ(wrap_lines("one two\nfour five", 10, 5), "one\n  two\nfour five");
  EXPECT_EQ(wrap_lines("éé éé éé", 8), "éé éé éé");
}

TEST(Terminal, RowsAreRedrawnWhereTermSaysThatTheyCanBe) {
  const char* const before = std::getenv("TERM");
  const std::string kept = before == nullptr ? "" : before;
  for (const char* dumb : {"dumb", ""}) {
    ::setenv("TERM", dumb, 1);
    EXPECT_FALSE(rows_can_be_redrawn()) << dumb;
  }
  ::setenv("TERM", "xterm-256color", 1);
  EXPECT_TRUE(rows_can_be_redrawn());
  ::unsetenv("TERM");
  EXPECT_FALSE(rows_can_be_redrawn());
  if (before != nullptr) ::setenv("TERM", kept.c_str(), 1);
}

}  // namespace lockstep::terminal_test
