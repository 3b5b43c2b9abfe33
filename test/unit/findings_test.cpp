// How findings are told; what is found: cases/findings.case.
#include "lockstep/data/inspect/inspect.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::findings_test {

using namespace test;

TEST(FoldCase, KnowsSmallLettersAndBlanks) {
  EXPECT_EQ(fold_case("  New \t YORK "), "new york");
  EXPECT_EQ(fold_case("ÄÖÜ ß ×"), "äöü ß ×");
  EXPECT_EQ(fold_case("ΑΠΡΩ АПРЯ"), "απρω апря");
  EXPECT_EQ(fold_case("äπп 日本 \xff"), "äπп 日本 \xff");
}

TEST(Findings, AreNoLongerThanPeopleRead) {
  constexpr int kColumns = 70;
  const TemporaryDirectory directory;
  const std::string path = directory / "t.csv";
  std::ofstream file(path, std::ios::binary);
  file << std::string(1000, 'n');
  for (int column = 1; column < kColumns; ++column) file << ",x" << column;
  file << ",y\n";
  for (int i = 0; i < 300; ++i) {
    for (int column = 0; column < kColumns; ++column) file << (i == 5 ? 1 : 0) << ",";
    file << 0.5 + i << "\n";
  }
  file.close();
  const TableInspection inspection = inspect_table({path, {path}}, {.label = {"y"}});
  ASSERT_EQ(inspection.findings.size(), 70U) << "each column is nearly constant";
  EXPECT_EQ(inspection.findings[0].setting, "") << "a name that is too long to be read";
  const std::string text = to_text(inspection);
  expect_parts(text, {"column 'x49': it is '0'", "20 more of this kind; --json lists all"});
  EXPECT_EQ(text.find("column 'x50': it is"), std::string::npos);
}

}  // namespace lockstep::findings_test
