// What is learnt of the columns of a table, and how records become numbers by it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/values/schema.h"
#include "support/error_text.h"
#include "support/note.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

using namespace test;

class TableTest : public testing::Test {
 protected:
  TableText open(const std::string& text) {
    path_ = directory_ / "t.csv";
    std::ofstream(path_, std::ios::binary) << text;
    const std::string paths[] = {path_};
    return open_table_text(paths, options_, alone());
  }
  LearntSchema learn(const std::string& text) {
    table_ = open(text);
    return learn_schema(table_, options_, held_, alone());
  }
  // The features and targets of all records.
  std::vector<std::vector<Scalar>> encode(const TableSchema& schema) {
    const Encoder encoder(schema, true);
    const std::vector<RowColumn> columns = match_columns(table_, schema, true);
    TableReader reader(table_, columns, std::ssize(schema.columns), schema.missing_values);
    std::vector<std::vector<Scalar>> rows;
    std::vector<std::byte> packed(static_cast<std::size_t>(encoder.record_bytes()));
    unseen_.assign(schema.columns.size(), 0);
    for (const TextChunk& chunk : table_.text.chunks) {
      reader.for_each_record(
          chunk,
          [&](std::span<const Cell> cells) {
            encoder.pack(cells, packed.data(), unseen_);
            std::vector<Scalar> row(static_cast<std::size_t>(encoder.features() + encoder.targets()));
            encoder.unpack(packed.data(), row.data(), row.data() + encoder.features());
            rows.push_back(row);
          },
          [](const std::string& bad) { ADD_FAILURE() << bad; });
    }
    return rows;
  }

  TemporaryDirectory directory_;
  std::string path_;
  TableOptions options_{.label = {"y"}};
  HoldOut held_;
  TableText table_;
  std::vector<Index> unseen_;
};

using Rows = std::vector<std::vector<Scalar>>;

TEST_F(TableTest, HeaderSeparatorAndNamesAreFound) {
  EXPECT_EQ(open("a,b\n1,2\n").names, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(table_.warnings.empty());
  const TableText tabs = open("a\tb;c\n1\t2\n");
  EXPECT_EQ(tabs.text.dialect.separator, '\t');
  EXPECT_EQ(tabs.names[1], "b;c");
  const TableText bare = open("1;x\n2;y\n");
  EXPECT_FALSE(bare.header);
  EXPECT_EQ(bare.names, (std::vector<std::string>{"c1", "c2"}));
  const TableText twice = open("a,a,\n1,2,3\n");
  EXPECT_EQ(twice.names, (std::vector<std::string>{"a", "a.2", "c3"}));
  EXPECT_EQ(twice.warnings.size(), 1u);
  options_.header = Header::kNo;
  EXPECT_EQ(open("a,b\n").names[0], "c1");
  expect_parts(error_text<DataError>([&] { open("\n\n"); }), {"t.csv", "no records"});
  expect_parts(error_text<DataError>([&] { open("\"a"); }), {"t.csv", "line 1", "a quote that opens"});
}

TEST_F(TableTest, KindsAreInferredFromAllValues) {
  std::string text = "id,n,c,zero,none,y\n";
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("u{},{},{},0,,{}\n", i, i == 7 ? "NA" : fmt::format("{}", i * 0.5),
                        i % 2 == 0 ? "red" : "blue", i % 3);
  }
  const LearntSchema learnt = learn(text);
  const auto kind = [&](std::size_t i) { return learnt.schema.columns[i].kind; };
  EXPECT_EQ(kind(0), ColumnKind::kIgnored);
  EXPECT_EQ(kind(1), ColumnKind::kNumeric);
  EXPECT_EQ(kind(2), ColumnKind::kCategorical);
  EXPECT_EQ(kind(3), ColumnKind::kIgnored);
  EXPECT_EQ(kind(4), ColumnKind::kIgnored);
  EXPECT_EQ(kind(5), ColumnKind::kNumeric);
  EXPECT_EQ(learnt.schema.columns[1].missing, 1);
  ASSERT_EQ(learnt.remarks.size(), 3u);
  test::expect_told(learnt.remarks[0]);
  expect_parts(
      learnt.remarks[0].text + learnt.remarks[1].text + learnt.remarks[2].text,
      {"'id' is ignored", "id or free text", "'zero' is ignored: it is constant", "'none' is ignored"});
}

// What a value says by being there or not is something to learn from.
TEST_F(TableTest, AColumnOfOneValueIsAFeatureIfItHasGaps) {
  const LearntSchema learnt = learn("a,b,c,y\n1,yes,2,0\n1,,2,1\n1,yes,,0\n");
  EXPECT_EQ(learnt.schema.columns[0].kind, ColumnKind::kIgnored);
  EXPECT_EQ(learnt.schema.columns[1].kind, ColumnKind::kCategorical);
  EXPECT_EQ(learnt.schema.columns[2].kind, ColumnKind::kNumeric);
  for (const std::string scale : {"none", "minmax", "standard", "log"}) {
    options_.scale = scale;
    const Rows rows = encode(learn("c,y\n2,0\n2,1\n,0\n").schema);
    ASSERT_EQ(rows.size(), 3U) << scale;
    for (const std::vector<Scalar>& row : rows) EXPECT_TRUE(std::isfinite(row[0])) << scale;
  }
}

TEST_F(TableTest, AFewBadNumbersDoNotMakeACategory) {
  std::string text = "n,y\n";
  for (int i = 0; i < 200; ++i) text += i == 50 ? "12x,1\n" : fmt::format("{},{}\n", i, i % 2);
  expect_parts(error_text<DataError>([&] { learn(text); }),
               {"t.csv', line 52, column 1 ('n'): found '12x', expected a number", "data.on_bad_record"});
  options_.on_bad_record = OnBadRecord::kSkip;
  const LearntSchema learnt = learn(text);
  EXPECT_EQ(learnt.scan.good, 199);
  EXPECT_EQ(learnt.scan.bad, 1);
  ASSERT_EQ(learnt.scan.rejects.size(), 1u);
  expect_parts(learnt.scan.rejects[0], {"line 52", "'12x'"});
  expect_parts(learnt.doubts.at(0), {"column 'n'", "1 value is no number, such as '12x'"});
  options_.max_bad_share = 1.0 / 200;
  EXPECT_EQ(learn(text).scan.bad, 1) << "just what is allowed";
  options_.max_bad_share = 0.001;
  expect_parts(error_text<DataError>([&] { learn(text); }), {"1 of 200 records are bad", "0.1 %", "line 52"});
}

TEST_F(TableTest, AHeaderInsideTheTableIsABadRecord) {
  std::string part = "x,y\n";
  for (int i = 0; i < 40; ++i) part += fmt::format("{},{}\n", i, i % 2);
  expect_parts(error_text<DataError>([&] { learn(part + part); }),
               {"t.csv', line 42", "the header once more", "put together"});
  options_.on_bad_record = OnBadRecord::kSkip;
  options_.max_bad_share = 0.02;
  const LearntSchema learnt = learn(part + part);
  EXPECT_EQ(learnt.schema.columns[0].kind, ColumnKind::kNumeric);
  EXPECT_EQ(learnt.schema.columns[1].kind, ColumnKind::kNumeric) << "no third class";
  EXPECT_EQ(learnt.scan.good, 80);
}

TEST_F(TableTest, ASeparatorAtTheEndOfEachRecordIsLeftOut) {
  const std::string text = "age,city,y\n20,A,0,\n21,B,1,\n22,A,0,\n23,B,1\n";
  const LearntSchema learnt = learn(text);
  EXPECT_EQ(learnt.scan.good, 4) << "one without it, too";
  EXPECT_EQ(learnt.scan.bad, 0);
  EXPECT_EQ(learnt.schema.columns.size(), 3U);
  expect_parts(learnt.remarks[0].text, {"t.csv", "end with a separator"});
  options_.numeric = {"age"};
  expect_parts(error_text<DataError>([&] { learn("age,city,y\n20,A,0,\n21,B,1,x\n"); }),
               {"line 3", "more than 3 fields"});
  // A fault in the field behind the last column, which has no name.
  expect_parts(error_text<DataError>([&] { learn("age,city,y\n20,A,0,\n21,B,1,\"x\" z\n"); }),
               {"line 3, column 4:", "behind a closing quote"});
  expect_parts(error_text<DataError>([&] { learn("age,city,y\n20,A,0\n21,B,1,\n"); }),
               {"line 3", "more than 3 fields"});  // only where the first record has it
}

TEST_F(TableTest, AFileWithAnotherSeparatorIsReadAllTheSame) {
  options_.separator = ",";
  const LearntSchema learnt = learn("age;city;y\n20;A;0\n21;B;1\n");
  EXPECT_EQ(learnt.schema.columns.size(), 3U);
  expect_parts(learnt.remarks[0].text, {"separated by ';', not by ','"});
  EXPECT_EQ(learn("age,ci;ty,y\n20,A,0\n21,B,1\n").schema.columns.size(), 3U) << "what is given fits";
}

TEST_F(TableTest, FilesOfOtherProgramsAreNamedWithTheWayToConvertThem) {
  const auto error = [&](const std::string& content) {
    return error_text<DataError>([&] { open(content); });
  };
  expect_parts(error("PAR1\x15\x04"), {"t.csv", "a Parquet file", "read_parquet('", "to_csv"});
  expect_parts(error("PK\x03\x04..."), {"a zip archive (or a spreadsheet in one)", "soffice --headless"});
  expect_parts(error("SQLite format 3"), {"an SQLite database", "sqlite3 -header -csv"});
  expect_parts(error("BZh91AY"), {"bzip2", "bunzip2"});
}

TEST_F(TableTest, BadRecordsAreNamed) {
  options_.numeric = {"n"};
  options_.categorical = {"c"};
  const auto error = [&](const std::string& record) {
    return error_text<DataError>([&] { learn("n,c,y\n1,a,0\n2,b,1\n" + record + "\n1,a,0\n"); });
  };
  expect_parts(error("1,a"), {"line 4: found 2 fields, expected 3"});
  expect_parts(error("1,a,0,5"), {"line 4: found more than 3 fields, expected 3"});
  expect_parts(error("1,\"5\" a 6,0"), {"line 4, column 2 ('c'): found 'a 6,0' behind a closing quote"});
  expect_parts(error("x,\"a\nb\",0"), {"line 4 to 5, column 1 ('n'): found 'x', expected a number"});
  expect_parts(error("1,caf\xe9,0"), {"line 4, column 2 ('c')", "caf\\xe9", "UTF-8"});
  expect_parts(error(std::string("1,a\0b,0", 7)), {"line 4, column 2", "a\\x00b"});
  expect_parts(error("1,a,"), {"line 4, column 3 ('y'): found '', expected a number"});
  expect_parts(error("inf,a,1"), {"line 4, column 1 ('n'): found 'inf', expected a number"});
  expect_parts(error("1e300,a,1"), {"line 4, column 1 ('n'): found '1e+300'", "single precision"});
  expect_parts(error("1,\"a,0"), {"line 4, column 2 ('c'): found a quote that opens a field", "data.quotes"});
  options_.quotes = false;
  EXPECT_EQ(learn("n,c,y\n1,\"a,0\n").scan.good, 1);
}

TEST_F(TableTest, AStrayQuoteCostsNoOtherRecord) {
  options_.on_bad_record = OnBadRecord::kSkip;
  options_.max_bad_share = 0.5;
  const auto scan = [&](const char* text) {
    std::string table = "c,n,y\n";
    for (int i = 0; i < 48; ++i) table += fmt::format("{},{},{}\n", i % 16 == 0 ? text : "b", i, i % 2);
    return learn(table).scan;
  };
  EXPECT_EQ(scan("5\" disk").good, 48);
  const Scan open = scan("\"disk");
  EXPECT_EQ(open.good, 45);
  EXPECT_EQ(open.bad_positions, (std::vector<Index>{0, 16, 32}));
}

TEST_F(TableTest, ATitleAboveTheTableIsNamedUntilItIsSkipped) {
  const std::string table = "n,c,y\n1,a,0\n2,b,1\n3,b,0\n4,a,1\n";
  const std::string text = "Sales of May\n\n" + table;
  expect_parts(error_text<DataError>([&] { open(text); }),
               {"t.csv': the first 2 lines, such as 'Sales of May'", "3 fields", "data.skip_lines = 2"});
  options_.skip_lines = 2;
  const TableSchema schema = learn(text).schema;
  EXPECT_EQ(schema.columns[0].name, "n");
  EXPECT_EQ(schema.columns[0].numbers.count, 4);
  // What a model reads may have fewer lines above it.
  const std::string paths[] = {path_};
  for (const std::string_view above : {"", "\n", "note\n", "note, and more\n\n"}) {
    std::ofstream(path_, std::ios::binary) << above << table;
    const TableText found = open_table_text(paths, options_, alone(), &schema);
    EXPECT_EQ(found.names, (std::vector<std::string>{"n", "c", "y"})) << above;
    EXPECT_EQ(found.warnings.size(), above.ends_with("\n\n") ? 0u : 1u) << above;
  }
}

TEST_F(TableTest, ATitleThatHasAsManyFieldsAsTheTableIsSkippedInAllFiles) {
  const std::string table = "1,a,0\n2,b,1\n3,b,0\n,a,1\n";
  options_.header = Header::kNo;
  options_.label = {"c3"};
  options_.skip_lines = 1;
  const TableSchema schema = learn("height,colour,yes\n" + table).schema;
  const std::string paths[] = {path_};
  const auto skipped = [&](const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return open_table_text(paths, options_, alone(), &schema).text.files.front().skipped_lines;
  };
  EXPECT_EQ(skipped("height,colour,yes\n" + table), 1);
  EXPECT_EQ(skipped("height,colour\n1,a\n2,b\n"), 1) << "no labels";
  EXPECT_EQ(skipped(table), 0) << "no title";
  EXPECT_EQ(skipped(",b,1\n" + table), 0) << "a missing number is one of a record";
}

TEST_F(TableTest, NumbersMayStandForMissingOnes) {
  const std::string text = "a,b,y\n1,-999,0\n3,5,1\n-999,7,0\n-999.0,9,1\n";
  const auto missing = [&] {
    const TableSchema schema = learn(text).schema;
    EXPECT_EQ(to_json(parse_schema(to_json(schema), "t")), to_json(schema));
    return std::pair(schema.columns[0].missing, schema.columns[1].missing);
  };
  EXPECT_EQ(missing(), std::pair(Index{0}, Index{0}));
  options_.columns = {"a: missing(-999)"};
  EXPECT_EQ(missing(), std::pair(Index{2}, Index{0}));
  EXPECT_DOUBLE_EQ(learn(text).schema.columns[0].numbers.mean, 2);
  options_.columns = {"a: missing(1, 3)", "b: numeric missing(5)"};
  EXPECT_EQ(missing(), std::pair(Index{2}, Index{1}));
  options_.columns.clear();
  options_.missing_values = {"", "-999"};
  EXPECT_EQ(missing(), std::pair(Index{2}, Index{1})) << "in all columns of numbers";
  options_.columns = {"y: missing(1)"};
  expect_parts(error_text<DataError>([&] { learn(text); }),
               {"line 3, column 3 ('y')", "found '1'", "expected a number"});
}

TEST_F(TableTest, NumbersAreScaledAndMissingOnesFilled) {
  const std::string text = "a,y\n1,0\n3,1\n,1\n5,0\n";
  const auto scaled = [&](const std::string& scale, const std::string& missing) {
    options_.scale = scale;
    options_.missing = missing;
    std::vector<Scalar> values;
    for (const auto& row : encode(learn(text).schema)) values.push_back(row[0]);
    return values;
  };
  const auto deviation = static_cast<Scalar>(std::sqrt(8.0 / 3));
  EXPECT_EQ(scaled("none", "mean"), (std::vector<Scalar>{1, 3, 3, 5}));
  EXPECT_EQ(scaled("none", "constant(-7)"), (std::vector<Scalar>{1, 3, -7, 5}));
  EXPECT_EQ(scaled("minmax", "mean"), (std::vector<Scalar>{0, 0.5, 0.5, 1}));
  EXPECT_EQ(scaled("minmax", "constant(1)"), (std::vector<Scalar>{0, 0.5, 0, 1}));
  const auto standard = scaled("standard", "mean");
  EXPECT_NEAR(standard[0], -2 / deviation, 1e-6);
  EXPECT_EQ(standard[2], 0);
  const auto logarithms = scaled("log", "mean");
  const double logs[] = {std::log(2.0), std::log(4.0), std::log(6.0)};
  const double mean = (logs[0] + logs[1] + logs[2]) / 3;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  EXPECT_NEAR(logarithms[3], (logs[2] - mean) / std::sqrt(squares / 3), 1e-6);
  EXPECT_EQ(logarithms[2], 0);
  EXPECT_NEAR(scaled("log", "constant(3)")[2], logarithms[1], 1e-6) << "as a record with that number";
  EXPECT_NEAR(scaled("standard", "constant(5)")[2], standard[3], 1e-6);
}

TEST_F(TableTest, AMissingNumberIsEncodedAsTheOneThatStandsForIt) {
  for (const std::string scale : {"none", "minmax", "standard", "log"}) {
    options_.scale = scale;
    for (const std::string missing : {"1", "3", "5"}) {
      options_.missing = "constant(" + missing + ")";
      const Rows rows = encode(learn("a,y\n1,0\n3,1\n,1\n5,0\n").schema);
      const std::size_t same = missing == "1" ? 0 : missing == "3" ? 1 : 3;
      EXPECT_EQ(rows[2][0], rows[same][0]) << missing << " with the scale " << scale;
    }
  }
}

TEST_F(TableTest, CategoriesAreEncoded) {
  const std::string text = "c,n,y\nred,1,0\nblue,2,1\nred,3,1\n?,4,0\n";
  options_.scale = "none";
  const auto encoded = [&](const std::string& encode_as, Index vocabulary) {
    options_.encode = encode_as;
    options_.vocabulary = vocabulary;
    return encode(learn(text).schema);
  };
  // Others, red, missing, blue: after the numbers, the most frequent first, then in the order of bytes.
  EXPECT_EQ(encoded("onehot", 10),
            (Rows{{1, 0, 1, 0, 0, 0}, {2, 0, 0, 0, 1, 1}, {3, 0, 1, 0, 0, 1}, {4, 0, 0, 1, 0, 0}}));
  EXPECT_EQ(encoded("index", 10), (Rows{{1, 1, 0}, {2, 3, 1}, {3, 1, 1}, {4, 2, 0}}));
  EXPECT_EQ(encoded("index", 1), (Rows{{1, 1, 0}, {2, 0, 1}, {3, 1, 1}, {4, 0, 0}}));
  EXPECT_EQ(unseen_[0], 2);
  const Rows hashed = encoded("hash(4)", 10);
  for (const auto& row : hashed) {
    ASSERT_EQ(row.size(), 6u);
    EXPECT_EQ(row[1] + row[2] + row[3] + row[4], 1);
  }
  EXPECT_TRUE(std::equal(hashed[0].begin() + 1, hashed[0].end() - 1, hashed[2].begin() + 1));
}

TEST_F(TableTest, LabelsThatAreTextBecomeClassesInOrder) {
  options_.columns = {"y: categorical"};
  EXPECT_EQ(learn("x,y\n1,10\n2,9\n").schema.columns[1].values, (std::vector<std::string>{"9", "10"}));
  const TableSchema schema = learn("x,y\n1,>50K\n2,<=50K\n").schema;
  EXPECT_EQ(schema.columns[1].values, (std::vector<std::string>{"<=50K", ">50K"}));
  EXPECT_EQ(encode(schema)[0][1], 1);
  table_ = open("x,y\n1,50K\n");
  const Encoder encoder(schema, true);
  const std::vector<Cell> cells{{.is_number = true, .number = 1}, {.text = "50K"}};
  std::byte packed[8];
  try {
    encoder.pack(cells, packed, unseen_);
    FAIL();
  } catch (const BadRecord& bad) {
    EXPECT_EQ(bad.column, 1);
    expect_parts(bad.expected, {"a class of the training data: <=50K, >50K"});
  }
}

TEST_F(TableTest, AColumnIsDescribedByItsFigures) {
  options_.columns = {"b: minmax", "c: log", "y: standard"};
  const TableSchema schema = learn("a,b,c,kind,y\n1,5,1,red,10\n,7,3,blue,20\n4,9,7,red,60\n").schema;
  expect_parts(fmt::format("{}", fmt::join(schema.describe(), "\n")),
               {"0  a: number, mean 2.5, deviation 1.5, 1 missing become the mean",
                "1  b: number, from 5 to 9", "2  c: number, logarithm, mean 1.386, deviation 0.566",
                "kind: one-hot of 2 values", "label  y: number, standard: mean 30, deviation 21.6"});
}

// The positive one is the second: the rare one, or that which is named, of each label.
TEST_F(TableTest, LabelsOfTwoClassesHaveThePositiveOneLast) {
  using Names = std::vector<std::string>;
  options_.label = {"y"};
  EXPECT_EQ(learn("x,y\n1,ok\n2,fraud\n3,ok\n").schema.columns[1].values, (Names{"ok", "fraud"}));
  EXPECT_EQ(learn("x,y\n1,ok\n2,fraud\n3,ok\n").schema.describe().front(),
            "      label  y: 2 classes, yes is 'fraud'");
  options_.positive = {"ok"};
  EXPECT_EQ(learn("x,y\n1,ok\n2,fraud\n3,ok\n").schema.columns[1].values, (Names{"fraud", "ok"}));
  options_.positive = {"0"};
  const TableSchema numbers = learn("x,y\n1,1\n2,0\n3,1\n").schema;
  EXPECT_EQ(numbers.columns[1].values, (Names{"1", "0"})) << "numbers become classes";
  EXPECT_EQ(encode(numbers)[1][1], 1);
  expect_parts(error_text<ConfigError>([&] { learn("x,y\n1,ok\n2,fraud\n"); }),
               {"data.positive = '0': column 'y' has the 2 classes fraud, ok"});
  options_.label = {"y", "z"};
  options_.positive = {"no", "bad"};
  const TableSchema several = learn("x,y,z\n1,no,bad\n2,yes,good\n").schema;
  EXPECT_EQ(several.columns[1].values, (Names{"yes", "no"}));
  EXPECT_EQ(several.columns[2].values, (Names{"good", "bad"}));
  options_.positive = {"a", "b", "c"};
  expect_parts(error_text<ConfigError>([&] { learn("x,y,z\n1,no,bad\n2,yes,good\n"); }),
               {"data.positive names 3 classes, and data.label 2 columns"});
}

TEST_F(TableTest, WhatIsDeclaredMustBeThere) {
  const auto error = [&](const TableOptions& options) {
    options_ = options;
    return error_text<ConfigError>([&] { learn("age,city,y\n1,a,0\n2,b,1\n"); });
  };
  expect_parts(error({}), {"data.label is missing", "age, city, y", "trainer inspect"});
  expect_parts(error({.label = {"yy"}}),
               {"data.label: there is no column 'yy'; did you mean 'y'? (columns: "});
  expect_parts(error({.label = {"y"}, .numeric = {"agee"}}), {"data.numeric", "did you mean 'age'?"});
  expect_parts(error({.label = {"y"}, .numeric = {"age"}, .ignore = {"age"}}),
               {"data.ignore", "named twice"});
  expect_parts(error({.label = {"y"}, .ignore = {"y"}}), {"data.ignore", "is the label"});
  expect_parts(error({.label = {"y"}, .columns = {"city"}}), {"data.columns", "a colon"});
  expect_parts(error({.label = {"y"}, .columns = {"city: hsh(4)"}}), {"unknown word 'hsh'", "'hash'"});
  expect_parts(error({.label = {"y"}, .columns = {"city: hash"}}), {"buckets"});
  expect_parts(error({.label = {"y"}, .scale = "big"}), {"data.scale", "unknown word 'big'"});
}

TEST_F(TableTest, ASchemaIsReadBackAndKeepsItsNumbers) {
  options_.columns = {"c: index", "m: constant(0.1) log", "h: categorical hash(8)", "i: ignore"};
  const TableSchema schema = learn("c,m,h,i,y\nred,0.1,1,x,0\nblue,,2,x,1\n\"gr\xc3\xbcn\",7,1,x,1\n").schema;
  const std::string json = to_json(schema);
  const TableSchema again = parse_schema(json, "s.json");
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(encode(again), encode(schema));
  EXPECT_EQ(schema.features(), 10);
  for (const std::string& bad :
       {std::string("x"), std::string("{}"), std::string("{\"version\": 2}"),
        std::string("{\"version\": 1, \"missing_values\": [], \"columns\": [{\"name\": 3}]}")}) {
    expect_parts(error_text<DataError>([&] { parse_schema(bad, "s.json"); }), {"'s.json' is no schema"});
  }
}

TEST_F(TableTest, AnotherTableIsMatchedByNameOrPlace) {
  options_.scale = "none";
  const TableSchema schema = learn("a,b,y\n1,2,0\n3,4,1\n").schema;
  table_ = open("extra,y,b,a\n9,1,20,10\n");
  EXPECT_EQ(encode(schema), (Rows{{10, 20, 1}}));
  table_ = open("10,20,1\n");
  EXPECT_EQ(encode(schema), (Rows{{10, 20, 1}}));
  EXPECT_EQ(match_columns(open("10,20\n"), schema, false).size(), 2u);
  expect_parts(error_text<DataError>([&] { match_columns(open("10,20\n"), schema, true); }),
               {"2 columns and no header, expected 3"});
  expect_parts(error_text<DataError>([&] { match_columns(open("aa,b,y\n1,2,3\n"), schema, true); }),
               {"no column 'a', which the model takes", "did 'aa' mean that?"});
  expect_parts(error_text<DataError>([&] { match_columns(open("a,b\n1,2\n"), schema, true); }),
               {"no column 'y', the label"});
}

TEST_F(TableTest, NothingIsLearntFromRecordsHeldBack) {
  held_ = {.share = 0.4, .key = 7};
  options_.categorical = {"word"};
  std::string text = "x,word,y\n";
  double sum = 0;
  Index learnt_from = 0;
  std::string only_held = "none";
  for (Index id = 0; id < 200; ++id) {
    const std::string word = fmt::format("w{}", id);
    text += fmt::format("{},{},{}\n", id * id, word, id == 5 ? "rare" : "usual");
    if (held_.holds(id)) {
      only_held = word;
      continue;
    }
    sum += static_cast<double>(id * id);
    ++learnt_from;
  }
  const LearntSchema learnt = learn(text);
  EXPECT_EQ(learnt.scan.good, 200);
  const std::vector<TableColumn>& columns = learnt.schema.columns;
  EXPECT_EQ(columns[0].numbers.count, learnt_from);
  EXPECT_NEAR(columns[0].numbers.mean, sum / static_cast<double>(learnt_from), 1e-6);
  EXPECT_EQ(std::ssize(columns[1].values), learnt_from);
  EXPECT_EQ(std::ranges::count(columns[1].values, only_held), 0);
  EXPECT_EQ(columns[2].values.size(), 2u);  // a class is one wherever it occurs
}

// Column y is the label; its mean and deviation are those of its targets.
TEST_F(TableTest, TheScaleOfALabelIsUndone) {
  const std::vector<double> labels{0, -3, 100, 7.5};
  for (const char* scale : {"log", "standard", "minmax"}) {
    SCOPED_TRACE(scale);
    options_.columns = {fmt::format("y: {}", scale)};
    const TableSchema schema = learn("x,y\n1,0\n2,-3\n3,100\n4,7.5\n").schema;
    const std::vector<LabelScale> scales = label_scales(schema);
    ASSERT_EQ(scales.size(), 1U);
    const auto rows = encode(schema);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_NE(rows[i][1], static_cast<Scalar>(labels[i]));
      EXPECT_NEAR(scales[0].undo(rows[i][1]), labels[i], 1e-4);
    }
    EXPECT_EQ(read_label_scales(to_json(schema)).at(0).range, scales[0].range);
    EXPECT_EQ(describe_scaled_label(schema), fmt::format("y: {}", scale));
  }
}

TEST_F(TableTest, LabelsThatAreNotScaledHaveNoScale) {
  options_.label = {"a", "b"};
  const TableSchema plain = learn("a,b,x\n1,2,3\n4,5,6\n").schema;
  EXPECT_TRUE(label_scales(plain).empty());
  EXPECT_EQ(describe_scaled_label(plain), "");
  options_.columns = {"b: standard"};
  const std::vector<LabelScale> scales = label_scales(learn("a,b,x\n1,2,3\n4,5,6\n").schema);
  ASSERT_EQ(scales.size(), 2U);
  EXPECT_EQ(scales[0].undo(4), 4) << "the other label stays";
  EXPECT_EQ(scales[1].undo(0), 3.5F);
  EXPECT_TRUE(read_label_scales("").empty());
  EXPECT_TRUE(read_label_scales("{\"version\": 1, \"format\": \"libsvm\"}").empty());
}

}  // namespace
}  // namespace lockstep
