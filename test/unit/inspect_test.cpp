// What an inspection says of the columns of a table, to people and to programs.
#include "lockstep/data/table/inspect/inspect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

std::string table_in(const test::TemporaryDirectory& directory) {
  return directory / "t.csv";
}

TEST(Inspect, MissingValuesArePercentInTheTextAndAShareInJson) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "t.csv";
  write_file_atomically(path, "a,b,y\n1,x,0\n,x,1\n2,,0\n,x,1\n3,x,0\n4,x,1\n5,x,0\n6,x,1\n");
  const TableInspection inspection = inspect_table(path, {.label = {"y"}});
  test::expect_parts(to_text(inspection), {"25.00 %", "12.50 %", "'x' 87.5 %"});  // all of the records
  const auto columns = parse_json<nlohmann::json>(to_json(inspection)).at("columns");
  const double shares[] = {2.0 / 8, 1.0 / 8, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(columns[i].at("missing"), 8 * shares[i]) << i;
    EXPECT_DOUBLE_EQ(columns[i].at("missing_share").get<double>(), shares[i]) << i;
  }
}

// The share of bad records that a config allows is rounded up, so that the file is just read; one in a
// hundred is allowed anyway.
TEST(Inspect, ProposesAShareOfBadRecordsThatIsJustEnough) {
  const test::TemporaryDirectory directory;
  const auto proposed = [&](Index records, Index bad) {
    std::string text = "a,b,y\n";
    for (Index i = 0; i < records; ++i)
      text += i < bad ? "1,2\n" : fmt::format("{},{},{}\n", i % 7, i % 11, i % 2);
    write_file_atomically(table_in(directory), text);
    std::vector<std::string> found;
    for (const DataSetting& setting : data_settings(inspect_table(table_in(directory), {.label = {"y"}}))) {
      if (setting.name == "on_bad_record" || setting.name == "max_bad_share") found.push_back(setting.value);
    }
    return found;
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(proposed(1000, 0), Values{});
  EXPECT_EQ(proposed(1000, 10), Values{"\"skip\""});
  EXPECT_EQ(proposed(1000, 11), (Values{"\"skip\"", "0.011"}));
  EXPECT_EQ(proposed(1003, 13), (Values{"\"skip\"", "0.013"})) << "0.01296";
  EXPECT_EQ(proposed(3000, 100), (Values{"\"skip\"", "0.034"})) << "0.0333";
}

}  // namespace
}  // namespace lockstep
