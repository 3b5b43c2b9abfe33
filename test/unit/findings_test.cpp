// What an inspection finds suspicious in records, columns and other data sets.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>

#include "lockstep/base/json.h"
#include "lockstep/data/table/inspect/inspect.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::findings_test {
namespace {

using namespace test;

class Findings : public testing::Test {
 protected:
  // A table of so many records with a column x beside a number z and a label y, which is 0 or 1 in turn.
  std::string write(const std::string& name, Index rows, const std::function<std::string(Index)>& x,
                    const std::function<std::string(Index)>& y = {}) {
    const std::string path = directory_ / name;
    std::ofstream file(path, std::ios::binary);
    file << "x,z,y\n";
    for (Index i = 0; i < rows; ++i) {
      file << x(i) << "," << noise(i) << "," << (y ? y(i) : fmt::format("{}", i * 7 / 3 % 2)) << "\n";
    }
    return path;
  }
  // A number that is different in each record, and says nothing.
  static double noise(Index i) { return 0.5 + static_cast<double>(i * 7919 % 10007); }

  TableInspection inspect(const std::vector<OtherSet>& others = {}) {
    return inspect_table(directory_ / "t.csv", options_, others);
  }
  std::string found(const std::vector<OtherSet>& others = {}) {
    std::string all;
    for (const Finding& finding : inspect(others).findings) {
      all += fmt::format("{} {}: {} {}\n", finding.kind, finding.column, finding.text, finding.setting);
    }
    return all;
  }

  TemporaryDirectory directory_;
  TableOptions options_{.label = {"y"}};
};

TEST_F(Findings, AColumnThatGivesTheLabelAwayIsNamed) {
  const auto text = [](Index i) { return i * 7 / 3 % 2 == 0 ? "paid" : "open"; };
  write("t.csv", 600, text);
  expect_parts(found(), {"leak x: it alone gives the label 'y' away: it predicts ", "records right",
                         "such as 'paid' with", "ignore = [\"x\"]"});
  // A number, where it is not missing.
  write("t.csv", 600,
        [](Index i) { return i % 4 == 0 ? "" : fmt::format("{}.5", (i * 7 / 3 % 2) * 100 + i % 50); });
  EXPECT_EQ(found(), "") << "the missing ones are of both classes";
  write("t.csv", 600, [](Index i) { return fmt::format("{}.5", (i * 7 / 3 % 2) * 100 + i % 50); });
  expect_parts(found(), {"leak x", "where the most frequent class does"});
  // A number that the label is computed from.
  write(
      "t.csv", 600, [](Index i) { return fmt::format("{}.25", i * 31 % 997); },
      [](Index i) { return fmt::format("{}", 3 * static_cast<double>(i * 31 % 997) + 1); });
  expect_parts(found(), {"leak x", "of the variance"});
}

TEST_F(Findings, ColumnsThatSayLittleGiveNothingAway) {
  write("t.csv", 600, [](Index i) { return i % 10 == 0 ? "a" : i * 7 / 3 % 2 == 0 ? "b" : "c"; });
  EXPECT_EQ(found(), "") << "right for nine in ten";
  options_.categorical = {"x"};
  write("t.csv", 600, [](Index i) { return fmt::format("id{}", i); });
  EXPECT_EQ(found(), "") << "a text of which each is different predicts nothing new";
}

TEST_F(Findings, RecordsThatOccurTwiceAreCounted) {
  options_.ignore = {"z"};
  write(
      "t.csv", 300, [](Index i) { return fmt::format("{}.5", i % 290); },
      [](Index i) { return fmt::format("{}", i % 290 % 2); });
  expect_parts(found(), {"duplicates : 10 of 300 records (3.33 %)", "such as records 1 and 291"});
  options_.ignore = {};
  EXPECT_EQ(found(), "") << "another column is different";
}

TEST_F(Findings, ARareClassIsNamed) {
  const auto class_of = [](Index rare) {
    return [rare](Index i) { return i * 37 % 100 < rare ? "yes" : "no"; };
  };
  const auto number = [](Index i) { return fmt::format("{}.5", i); };
  write("t.csv", 1000, number, class_of(3));
  expect_parts(found(), {"imbalance y: 97 % of the records are 'no' and 3 % (30) are 'yes'",
                         "train.class_weights = \"balanced\""});
  write("t.csv", 1000, number, class_of(20));
  EXPECT_EQ(found(), "");
}

TEST_F(Findings, ColumnsThatAreNearlyConstantOrNameTheRecordAreNamed) {
  write("t.csv", 400, [](Index i) { return i == 17 ? "b" : "a"; });
  expect_parts(found(), {"nearly constant x: it is 'a' in 399 of 400 records", "'b'", "ignore = [\"x\"]"});
  write("t.csv", 400, [](Index i) { return fmt::format("{}", 70'000 + i * 13); });
  expect_parts(found(), {"identifier x: its 400 values, such as 70000, are whole numbers and all different"});
  write("t.csv", 400, [](Index i) { return fmt::format("{}", 70'000 + i / 2 * 13); });
  EXPECT_EQ(found(), "") << "two records have each of them";
  write("t.csv", 400, [](Index i) { return fmt::format("{}", 1e15 + static_cast<double>(i % 50)); });
  expect_parts(found(), {"rounding x: its 400 numbers, from 1000000000000000", "in single precision"});
}

TEST_F(Findings, NumbersThatStandForMissingOnesAreNamed) {
  const auto age = [](const std::string& marker) {
    return [marker](Index i) { return i % 10 == 0 ? marker : fmt::format("{}", 20 + i % 47); };
  };
  write("t.csv", 300, age("-999"));
  expect_parts(found(), {"sentinel x: 30 of 300 numbers are -999, far from all others, which are 20 to 66",
                         "columns = [\"x: missing(-999)\"]"});
  write("t.csv", 300, [](Index i) {
    return i % 10 == 0 ? "-99" : i % 10 == 1 ? "9999.0" : fmt::format("{}", i % 47);
  });
  expect_parts(found(), {"30 of 300 numbers are -99,", "30 of 300 numbers are 9999,"});
  for (const char* const usual : {"99", "-98", "100"}) {
    write("t.csv", 300, age(usual));
    EXPECT_EQ(found(), "") << usual;
  }
  // Once it is said, it is no number of the column.
  write("t.csv", 300, age("-999"));
  for (const auto& said : {TableOptions{.label = {"y"}, .columns = {"x: missing(-999.0)"}},
                           TableOptions{.label = {"y"}, .missing_values = {"", "-999"}}}) {
    options_ = said;
    EXPECT_EQ(found(), "");
    const TableInspection inspection = inspect();
    EXPECT_EQ(inspection.scan.columns[0].missing, 30);
    EXPECT_EQ(inspection.scan.columns[0].numbers.min, 20);
  }
}

TEST_F(Findings, SpellingsOfOneValueAreNamed) {
  write("t.csv", 300, [](Index i) {
    return i % 50 == 0 ? "oslo" : i % 50 == 1 ? "\"OSLO  \"" : i % 2 == 0 ? "Oslo" : "Voss";
  });
  expect_parts(found(), {"spelling x: 'Oslo', 'OSLO  ', 'oslo' differ in case or blanks only",
                         "(12 records have another spelling than most)", "fold_case = true"});
  options_.fold_case = true;
  EXPECT_EQ(found(), "");
  EXPECT_EQ(inspect().scan.columns[0].values().size(), 2U);
  options_.fold_case = false;
  write("t.csv", 300, [](Index i) {
    return std::array{"yes", "Y", "1", "no", "n"}[static_cast<std::size_t>(i % 5)];
  });
  expect_parts(found(), {"spelling x: yes and no are written in 5 ways", "'no'", "write them in one way"});
  write("t.csv", 300, [](Index i) { return i % 2 == 0 ? "yes" : "no"; });
  EXPECT_EQ(found(), "");
}

TEST(FoldCase, KnowsSmallLettersAndBlanks) {
  EXPECT_EQ(fold_case("  New \t YORK "), "new york");
  EXPECT_EQ(fold_case("ÄÖÜ ß ×"), "äöü ß ×");
  EXPECT_EQ(fold_case("ΑΠΡΩ АПРЯ"), "απρω апря");
  EXPECT_EQ(fold_case("äπп 日本 \xff"), "äπп 日本 \xff");
}

TEST_F(Findings, AnotherSetThatIsUnlikeIsDescribed) {
  const auto city = [](Index i) { return i % 3 == 0 ? "Oslo" : i % 3 == 1 ? "Voss" : "Bergen"; };
  write("t.csv", 600, city);
  const auto other = [&](const std::function<std::string(Index)>& x) {
    return std::vector<OtherSet>{{"the test set", {write("test.csv", 300, x)}}};
  };
  const std::string far = found(other([&](Index i) { return i % 8 == 0 ? "Paris" : city(i); }));
  expect_parts(
      far,
      {"unseen x: 38 of 300 values of the test set (12.7 %) are not in the training data, such as 'Paris'"});
  EXPECT_EQ(far.find("drift"), std::string::npos) << far;
  expect_parts(found(other([](Index i) { return i % 4 == 0 ? "Voss" : "Oslo"; })),
               {"drift x: it is distributed otherwise in the test set", "differ by 0.4"});
  const auto number = [](Index i) { return fmt::format("{}.5", i * 31 % 100); };
  write("t.csv", 600, number);
  EXPECT_EQ(found(other([&](Index i) { return number(i + 17); })).find("x:"), std::string::npos);
  expect_parts(found(other([](Index i) { return fmt::format("{}.5", 50 + i * 31 % 100); })),
               {"unseen x: its values in the test set reach from 50.5 to 149.5",
                "from 0.5 to 99.5 (150 of 300", "drift x", "up to 49.5 differ by 0.5"});
  // Its first records are those of the training data.
  expect_parts(found(other(number)),
               {"overlap : 300 of 300 records of the test set", "record 1 and record 1 there"});
}

// Of 300 records 30 are beyond the numbers from 0.5 to 99.5, on one side alone.
TEST_F(Findings, NumbersBelowThoseOfTheTrainingDataAreBeyondThemAsThoseAbove) {
  const auto number = [](Index i) { return i * 31 % 100; };
  write("t.csv", 600, [&](Index i) { return fmt::format("{}.5", number(i)); });
  const auto moved = [&](Index by) {
    return std::vector<OtherSet>{{"the test set", {write("test.csv", 300, [&](Index i) {
                                    return fmt::format("{}", static_cast<double>(number(i) + by) + 0.5);
                                  })}}};
  };
  expect_parts(found(moved(-10)),
               {"reach from -9.5 to 89.5", "from 0.5 to 99.5 (30 of 300 records are beyond)"});
  expect_parts(found(moved(10)),
               {"reach from 10.5 to 109.5", "from 0.5 to 99.5 (30 of 300 records are beyond)"});
  EXPECT_EQ(found(moved(0)).find("unseen"), std::string::npos);
}

TEST_F(Findings, AreLinesForPeopleAndFieldsForPrograms) {
  write("t.csv", 400, [](Index i) { return i == 17 ? "b" : "a"; });
  const TableInspection inspection = inspect();
  expect_parts(to_text(inspection), {"Suspicious", "column 'x': it is 'a' in 399", "; add ignore = [\"x\"]"});
  const auto finding = parse_json<nlohmann::json>(to_json(inspection)).at("findings").at(0);
  EXPECT_EQ(finding.at("kind"), "nearly constant");
  EXPECT_EQ(finding.at("column"), "x");
  EXPECT_EQ(finding.at("count"), 399);
  EXPECT_EQ(finding.at("setting"), "ignore = [\"x\"]");
}

TEST_F(Findings, AreNoLongerThanPeopleRead) {
  constexpr int kColumns = 70;
  const std::string path = directory_ / "t.csv";
  std::ofstream file(path, std::ios::binary);
  file << std::string(1000, 'n');
  for (int column = 1; column < kColumns; ++column) file << ",x" << column;
  file << ",y\n";
  for (int i = 0; i < 300; ++i) {
    for (int column = 0; column < kColumns; ++column) file << (i == 5 ? 1 : 0) << ",";
    file << 0.5 + i << "\n";
  }
  file.close();
  const TableInspection inspection = inspect();
  ASSERT_EQ(inspection.findings.size(), 70U) << "each column is nearly constant";
  EXPECT_EQ(inspection.findings[0].setting, "") << "a name that is too long to be read";
  const std::string text = to_text(inspection);
  expect_parts(text, {"column 'x49': it is '0'", "20 more of this kind; --json lists all"});
  EXPECT_EQ(text.find("column 'x50': it is"), std::string::npos);
}

// A title above the table, which a config then leaves out.
TEST_F(Findings, LinesAboveTheTableAreFound) {
  const std::string path = directory_ / "t.csv";
  std::ofstream(path, std::ios::binary)
      << "Sales of May\r\n\r\nx,z,y\r\n1,a,0\r\n2,b,1\r\n3,c,0\r\n4,d,1\r\n";
  const TableInspection inspection = inspect();
  EXPECT_EQ(inspection.scan.good, 4);
  expect_parts(to_text(inspection), {"the first 2 lines, such as 'Sales of May', do not look like the table",
                                     "data.skip_lines = 2", "\nskip_lines = 2\n"});
  std::ofstream(path, std::ios::binary) << "x,z,y\r1,a,0\r2,b,1\r3,c,0\r4,d,1\r";
  expect_parts(to_text(inspect()), {"4 records of 3 columns", "end with a carriage return alone"});
}

}  // namespace
}  // namespace lockstep::findings_test
