// Cells of CSV files, which any program reads as they were (RFC 4180).
#include "lockstep/base/text.h"
#include "support/common.h"

namespace lockstep::csv_test {

TEST(CsvCell, IsQuotedWhereItWouldNotBeReadAsOne) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a;b|c\td'e -1.5"), "a;b|c\td'e -1.5");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell(","), "\",\"");
  EXPECT_EQ(csv_cell("say \"yes\""), "\"say \"\"yes\"\"\"");
  EXPECT_EQ(csv_cell("\""), "\"\"\"\"");
  EXPECT_EQ(csv_cell("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_cell("a\rb"), "\"a\rb\"");
  EXPECT_EQ(csv_cell("end\n"), "\"end\n\"");
}

TEST(CsvQuoted, IsQuotedInAnyCase) {
  EXPECT_EQ(csv_quoted("plain"), "\"plain\"");
  EXPECT_EQ(csv_quoted(""), "\"\"");
  EXPECT_EQ(csv_quoted("a\"\"b"), "\"a\"\"\"\"b\"");
}

}  // namespace lockstep::csv_test
