// What an inspection says of the columns of a table, to people and to programs.
#include "lockstep/data/table/inspect/inspect.h"

#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

TEST(Inspect, MissingValuesArePercentInTheTextAndAShareInJson) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "t.csv";
  write_file_atomically(path, "a,b,y\n1,x,0\n,x,1\n2,,0\n,x,1\n3,x,0\n4,x,1\n5,x,0\n6,x,1\n");
  const TableInspection inspection = inspect_table(path, {.label = {"y"}});
  test::expect_parts(to_text(inspection), {"25.00 %", "12.50 %"});
  const auto columns = parse_json<nlohmann::json>(to_json(inspection)).at("columns");
  const double shares[] = {2.0 / 8, 1.0 / 8, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(columns[i].at("missing"), 8 * shares[i]) << i;
    EXPECT_DOUBLE_EQ(columns[i].at("missing_share").get<double>(), shares[i]) << i;
  }
}

}  // namespace
}  // namespace lockstep
