// The column of a table that weighs its records.
#include <gtest/gtest.h>

#include <fstream>

#include "data/table/sources/table_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/inspect/inspect.h"
#include "lockstep/data/validation_split.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/temporary_directory.h"

namespace lockstep::table_weight_test {
namespace {

using namespace test;

class TableWeight : public testing::Test {
 protected:
  std::unique_ptr<TableSource> open(const std::string& text, const std::string& schema = "",
                                    bool labels = true) {
    path_ = directory_ / "t.csv";
    std::ofstream(path_, std::ios::binary) << text;
    return std::make_unique<TableSource>(TableRequest{.paths = {path_},
                                                      .name = "t",
                                                      .options = options_,
                                                      .schema = schema,
                                                      .labels = labels,
                                                      .peers = alone()});
  }
  // Of all records, one after the other: the features, and the labels with the weights behind them.
  static Gathered read(const RecordSource& source) {
    return gather(*load(source, everything(source), {}), source.info(),
                  wanted_ids(source.info().rows, everything(source)));
  }
  std::string error_of(const std::string& text) {
    return error_text<DataError>([&] { open(text); });
  }

  TemporaryDirectory directory_;
  std::string path_;
  TableOptions options_{.label = {"y"}, .weight = "w", .scale = "none"};
};

TEST_F(TableWeight, StandsBehindTheTargetsAndIsNoFeature) {
  const auto source = open("w,a,y,b\n2,10,1,20\n0,11,0,21\n0.5,12,1,22\n");
  EXPECT_TRUE(source->info().weighted);
  EXPECT_EQ(source->info().target_columns, 1);
  EXPECT_EQ(source->info().features.size(), 2);
  const Gathered all = read(*source);
  EXPECT_EQ(all.features, (std::vector<Scalar>{10, 20, 11, 21, 12, 22}));
  EXPECT_EQ(all.targets, (std::vector<Scalar>{1, 2, 0, 0, 1, 0.5}));
  expect_parts(source->notes().back(), {"the 2 features", "weight  w: from 0 to 2, mean 0.8333"});
}

TEST_F(TableWeight, IsNeverScaledAndIsThereForClassesToo) {
  options_.scale = "log";
  options_.columns = {"y: categorical"};
  const Gathered all = read(*open("w,a,y\n3,1,no\n4,2,yes\n5,3,no\n"));
  EXPECT_EQ(all.targets, (std::vector<Scalar>{0, 3, 1, 4, 0, 5}));
}

TEST_F(TableWeight, IsWrittenAsTheNumbersOfTheTable) {
  options_.decimal = ",";
  options_.thousands = ".";
  options_.separator = ";";
  const std::string text = "w;a;y\n1,08;10,5;1\n2.000;11;0\n0;1.000,25;1\n";
  const auto source = open(text);
  EXPECT_EQ(read(*source).targets, (std::vector<Scalar>{1, 1.08F, 0, 2000, 1, 0}));
  EXPECT_EQ(read(*open(text, source->schema())).targets, (std::vector<Scalar>{1, 1.08F, 0, 2000, 1, 0}));
  expect_parts(error_of("w;a;y\n1.08;10,5;1\n1;1;0\n"), {"line 2, column 1 ('w'): found '1.08'"});
}

TEST_F(TableWeight, ThatIsBadMakesTheRecordBad) {
  const auto bad = [&](const std::string& weight, const std::string& found) {
    expect_parts(error_of("w,a,y\n1,1,0\n" + weight + ",2,1\n"),
                 {"t.csv', line 3, column 1 ('w'): found " + found, "data.on_bad_record"});
  };
  for (const std::string weight : {"-1", "-1e-9", "x", "", "NaN", "NA", "inf", "\"-2\""}) {
    const std::string shown = weight.starts_with('"') ? weight.substr(1, weight.size() - 2) : weight;
    bad(weight, "'" + shown + "', expected a weight, which is a number of 0 or more");
  }
  bad("1e39", "'1e+39', expected a number that single precision can hold");
  bad("1e-40", "'1e-40', expected a weight of 0, or one that single precision can hold");
  options_.on_bad_record = OnBadRecord::kSkip;
  options_.max_bad_share = 0.5;
  const auto source = open("w,a,y\n1,1,0\n-1,2,1\n3,3,1\n,4,0\n");
  EXPECT_EQ(source->info().rows, 2);
  EXPECT_EQ(source->rejects().size(), 2u);
  EXPECT_EQ(read(*source).targets, (std::vector<Scalar>{0, 1, 1, 3}));
}

TEST_F(TableWeight, AllZeroIsRefused) {
  expect_parts(error_of("w,a,y\n0,1,0\n0,2,1\n"), {"t.csv', column 'w': the weights of all 2 records are 0"});
  const std::string schema = open("w,a,y\n1,1,0\n0,2,1\n")->schema();
  expect_parts(error_text<DataError>([&] { open("w,a,y\n0,1,0\n", schema); }),
               {"the weights of all 1 records are 0"});
}

TEST_F(TableWeight, IsInTheSchemaAndAskedForWhereItCounts) {
  const std::string schema = open("w,a,y\n1,1,0\n2,2,1\n")->schema();
  EXPECT_NE(schema.find("\"use\": \"weight\""), std::string::npos) << schema;
  EXPECT_EQ(to_json(parse_schema(schema, "s")), schema);
  options_.weight = "";  // what the config says now does not matter
  EXPECT_EQ(read(*open("a,y,w\n5,1,4\n", schema)).targets, (std::vector<Scalar>{1, 4}));
  expect_parts(error_text<DataError>([&] { open("a,y,v\n5,1,4\n", schema); }),
               {"t.csv' has no column 'w', the weights of its records (data.weight)", "a, y, v"});
  expect_parts(error_text<DataError>([&] { open("a,y,w\n5,1,-4\n", schema); }),
               {"column 3 ('w'): found '-4'"});
  // Who predicts needs neither labels nor weights.
  for (const std::string text : {"a\n5\n", "a,w,y\n5,,\n"}) {
    const auto source = open(text, schema, false);
    EXPECT_FALSE(source->info().weighted);
    EXPECT_EQ(source->info().label_columns(), 0);
    EXPECT_EQ(read(*source).features, std::vector<Scalar>{5});
  }
}

TEST_F(TableWeight, IsKnownByItsPlaceWhereThereAreNoNames) {
  options_ = {.label = {"c3"}, .weight = "c1", .scale = "none", .header = Header::kNo};
  const std::string schema = open("1,7,0\n2,8,1\n")->schema();
  EXPECT_EQ(read(*open("3,9,1\n", schema)).targets, (std::vector<Scalar>{1, 3}));
  EXPECT_EQ(read(*open("9\n", schema, false)).features, std::vector<Scalar>{9});
  expect_parts(error_text<DataError>([&] { open("9,1\n", schema, false); }),
               {"2 columns and no header, expected 3 (or 1 without labels and weights)"});
}

TEST_F(TableWeight, IsDeclaredOnceAndAsNothingElse) {
  const auto refusal = [&](const TableOptions& options) {
    options_ = options;
    return error_text<ConfigError>([&] { open("w,a,y\n1,1,0\n"); });
  };
  expect_parts(refusal({.label = {"y"}, .weight = "v"}), {"data.weight: there is no column 'v'"});
  expect_parts(refusal({.label = {"y"}, .weight = "weigth"}), {"data.weight: there is no column 'weigth'"});
  expect_parts(refusal({.label = {"y"}, .weight = "y"}), {"data.weight: column 'y' is the label"});
  expect_parts(refusal({.label = {"y"}, .weight = "w", .numeric = {"w"}}),
               {"data.numeric: column 'w' is the weight of the records"});
  expect_parts(refusal({.label = {"y"}, .weight = "w", .ignore = {"w"}}), {"data.ignore: column 'w'"});
  expect_parts(refusal({.label = {"y"}, .weight = "w", .columns = {"w: log"}}), {"data.columns: column 'w'"});
}

TEST_F(TableWeight, GoesWithTheRecordsThatAreHeldBack) {
  std::string text = "w,a,y\n";
  for (int i = 1; i <= 60; ++i) text += std::to_string(i) + "," + std::to_string(i) + ",1\n";
  const DataSets parts = split_validation(open(text), {.share = 0.3, .key = 1});
  for (const RecordSource* part : {parts.train.get(), parts.validation.get()}) {
    EXPECT_TRUE(part->info().weighted);
    const Gathered all = read(*part);
    for (std::size_t i = 0; i < all.features.size(); ++i) EXPECT_EQ(all.targets[2 * i + 1], all.features[i]);
  }
}

TEST_F(TableWeight, IsLookedAtByInspect) {
  const auto inspect = [&](const std::string& text) {
    path_ = directory_ / "i.csv";
    std::ofstream(path_, std::ios::binary) << text;
    return to_text(inspect_table(path_, options_));
  };
  expect_parts(inspect("w,a,y\n1,1.5,0\n2,2,1\n"), {"w       weight", "weight = \"w\"", "numeric = [\"a\"]"});
  expect_parts(inspect("w,a,y\n1,1.5,0\n-2,2,1\n"), {"column 'w': weights go down to -2"});
  expect_parts(inspect("w,a,y\n1,1.5,0\n,2,1\n"),
               {"column 'w': 1 record has no weight", "on_bad_record = \"skip\""});
  expect_parts(inspect("w,a,y\n0,1.5,0\n0,2,1\n"), {"column 'w': all weights are 0"});
  expect_parts(inspect("w,a,y\n3,1.5,0\n3,2,1\n"), {"column 'w': all weights are equal"});
}

}  // namespace
}  // namespace lockstep::table_weight_test
