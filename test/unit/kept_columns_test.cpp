// Columns of a table that are written beside its predictions.
#include "lockstep/data/table/schema/kept_columns.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/prediction_file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/text_lines.h"

namespace lockstep::test::kept_columns_test {

using Texts = std::vector<std::string>;

class Kept : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  // A table whose records have been counted.
  static TableText open(const Texts& paths, const TableOptions& options, const TableSchema* known = nullptr) {
    TableText table = open_table_text(paths, options, alone(), known);
    find_chunks(table.text);
    return table;
  }
  TemporaryDirectory directory_;
};

Texts next(KeptColumns& columns) {
  const std::span<const std::string> cells = columns.next();
  return {cells.begin(), cells.end()};
}

TEST_F(Kept, CellsComeRecordByRecordAsTheyStandInAllFiles) {
  const Texts paths{write("a.csv", "id,x,\"last, first\"\n007,1,\"O\"\"Hara, \nS\"\n\n8,zwei, NA \n"),
                    write("b.csv", "id,x,\"last, first\"\n9,3\n10,3,z\n")};
  TableOptions options;
  options.chunk_kib = 1;
  const TableText table = open(paths, options);
  KeptColumns columns(table, {"last, first", "id"});
  EXPECT_EQ(next(columns), (Texts{"O\"Hara, \nS", "007"}));
  EXPECT_EQ(next(columns), (Texts{"NA", "8"}));
  EXPECT_EQ(next(columns), (Texts{"", ""})) << "a record that cannot be read";
  EXPECT_EQ(next(columns), (Texts{"z", "10"}));
  expect_parts(error_text<DataError>([&] { columns.next(); }), {"b.csv", "changed"});
}

TEST_F(Kept, LinesAboveTheTableAreThoseThatTheRecordsAreReadWith) {
  const Texts paths{write("a.csv", "id,name\n1,x\n2,y\n3,z\n")};
  TableOptions options;
  options.skip_lines = 2;  // of the data that the model was trained on
  TableSchema known;
  known.columns = {{.name = "id", .kind = ColumnKind::kNumeric}, {.name = "name"}};
  const TableText table = open(paths, options, &known);
  KeptColumns columns(table, {"name"});
  EXPECT_EQ(next(columns), Texts{"x"});
}

TEST_F(Kept, AColumnThatIsNotThereIsRefused) {
  const Texts paths{write("a.csv", "id,name\n1,2\n")};
  const TableText table = open(paths, {});
  expect_parts(error_text<ConfigError>([&] { KeptColumns(table, {"nam"}); }),
               {"--keep", "'nam'", "a.csv", "did you mean 'name'?", "id, name"});
}

TEST_F(Kept, StandBetweenTheRowAndItsPredictionUnderNamesOfTheirOwn) {
  const Texts paths{write("a.csv", "row,prediction,t\n5,\"a,b\",\"q\"\"\"\nx\n")};
  const std::vector<PredictionColumn> predictions{{.name = "prediction"}, {.name = "t"}};
  const TableText table = open(paths, {});
  const auto file_of = [&](const std::string& name) {
    KeptColumns columns(table, {"row", "prediction"});
    const std::string path = directory_ / name;
    const auto file = choose_prediction_file(path).make(
        {.path = path, .rows = 2, .columns = predictions, .kept = &columns});
    const double values[] = {1, 2};
    file->append(PredictedRows(values, 1, 2));
    file->append_unknown();
    file->finish();
    return read_file(path);
  };
  EXPECT_EQ(file_of("p.csv"), "row,row.2,prediction,prediction.2,t\n0,5,\"a,b\",1,2\n1,,,,\n");
  EXPECT_EQ(file_of("p.jsonl"), R"({"row":0,"row.2":"5","prediction":"a,b","prediction.2":1,"t":2})"
                                "\n"
                                R"({"row":1,"row.2":"","prediction":"","prediction.2":null,"t":null})"
                                "\n");
}

TEST(ColumnNames, AreAListAsInCsv) {
  EXPECT_EQ(parse_column_names("--keep", "id,\"last, \"\"first\"\"\""), (Texts{"id", "last, \"first\""}));
  for (const char* bad : {"", "a,", ",a", "a,b,a", "\"a"}) {
    expect_parts(error_text<ConfigError>([&] { parse_column_names("--keep", bad); }), {"--keep"});
  }
}

}  // namespace lockstep::test::kept_columns_test
