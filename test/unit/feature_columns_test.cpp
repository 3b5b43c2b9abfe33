// Columns of the data as features, and values of a column as people write them.
#include "lockstep/data/table/sources/feature_columns.h"

#include "lockstep/base/errors.h"
#include "lockstep/data/table/values/notation.h"
#include "support/error_text.h"

namespace lockstep::test::feature_columns_test {

TableColumn numeric(const std::string& name) {
  return {.name = name,
          .kind = ColumnKind::kNumeric,
          .scale = Scale::kMinMax,
          .numbers = {.count = 3, .mean = 20, .squares = 200, .min = 10, .max = 30}};
}

TableColumn categorical(const std::string& name, Encoding encoding) {
  return {.name = name,
          .kind = ColumnKind::kCategorical,
          .encoding = encoding,
          .buckets = 8,
          .values = {"red", "", "blue"}};
}

TableSchema schema() {
  TableSchema schema{.missing_values = {}};
  schema.columns = {categorical("colour", Encoding::kOneHot), numeric("age"),
                    categorical("zip", Encoding::kHash), categorical("shop", Encoding::kIndex), numeric("y")};
  schema.columns.back().label = true;
  return schema;
}

TEST(FeatureColumns, OfATableAreItsColumnsInTheOrderOfTheFeatures) {
  const std::vector<FeatureColumn> columns = feature_columns(to_json(schema()), 14);
  ASSERT_EQ(columns.size(), 4U);
  const std::vector<std::pair<std::string, Range>> expected{
      {"age", {0, 1}}, {"colour", {1, 5}}, {"zip", {5, 13}}, {"shop", {13, 14}}};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_EQ(columns[i].name, expected[i].first);
    EXPECT_EQ(columns[i].features, expected[i].second);
  }
  expect_parts(error_text<DataError>([] { feature_columns(to_json(schema()), 15); }),
               {"14 features", "takes 15"});
}

TEST(FeatureColumns, OfArraysHaveNumbers) {
  const std::vector<FeatureColumn> columns = feature_columns("", 3);
  EXPECT_EQ(columns.back().name, "2");
  EXPECT_EQ(columns.back().features, (Range{2, 3}));
  const char* libsvm =
      R"({"version": 1, "format": "libsvm", "features": 3, "first_index": 1, "classes": []})";
  EXPECT_EQ(feature_columns(libsvm, 3).back().name, "3") << "as the file counts them";
}

std::vector<std::string> texts(const std::vector<ColumnValue>& values) {
  std::vector<std::string> all;
  for (const ColumnValue& value : values) all.push_back(value.text);
  return all;
}

TEST(ColumnValues, OfNumbersAreQuantilesInTheirUnits) {
  const FeatureColumn age = feature_columns(to_json(schema()), 14).front();
  std::vector<Scalar> found;
  for (int i = 100; i >= 0; --i) found.push_back(static_cast<Scalar>(i) / 100);
  const std::vector<ColumnValue> values = column_values(age, found, 5);
  EXPECT_EQ(texts(values), (std::vector<std::string>{"10", "15", "20", "25", "30"}));
  EXPECT_EQ(values[1].features, std::vector<Scalar>{0.25F});
  EXPECT_EQ(texts(column_values(age, {1, 0, 1, 1}, 5)), (std::vector<std::string>{"10", "30"})) << "no more";
  std::vector<Scalar> lopsided(100, 0);
  for (const int i : {1, 2, 3}) lopsided.push_back(static_cast<Scalar>(i) / 2);
  EXPECT_EQ(texts(column_values(age, lopsided, 3)), (std::vector<std::string>{"10", "40"})) << "each once";
  FeatureColumn centred = age;
  centred.table->scale = Scale::kStandard;
  centred.table->numbers = {.count = 3, .mean = 1e3 / 3, .squares = 3e5, .min = 0, .max = 1e3};
  const auto zero = static_cast<Scalar>(-1e3 / 3 / centred.table->numbers.deviation());
  EXPECT_EQ(texts(column_values(centred, {zero}, 5)), std::vector<std::string>{"0"}) << "not 1e-06";
  EXPECT_EQ(texts(column_values({.name = "0", .features = {0, 1}}, {0.5F, -2}, 5)),
            (std::vector<std::string>{"-2", "0.5"}));
}

TEST(ColumnValues, OfNumbersInBinsMoveAllTheirFeatures) {
  FeatureColumn age = feature_columns(to_json(schema()), 14).front();
  age.table->bins = 2;
  age.table->edges = {10, 20, 30};
  const std::vector<ColumnValue> values = column_values(age, {0.25F, 1}, 5);
  EXPECT_EQ(texts(values), (std::vector<std::string>{"15", "30"}));
  EXPECT_EQ(values[0].features, (std::vector<Scalar>{0.25F, 0.5F, 0})) << "the number, then its bins";
  age.table->keeps_number = false;
  const std::vector<ColumnValue> edges = column_values(age, {0.5F}, 2);
  EXPECT_EQ(texts(edges), (std::vector<std::string>{"10", "30"})) << "of bins alone the edges are known";
  EXPECT_EQ(edges[1].features, (std::vector<Scalar>{1, 1}));
}

TEST(ColumnValues, OfCategoriesAreTheMostFrequent) {
  const std::vector<FeatureColumn> columns = feature_columns(to_json(schema()), 14);
  const std::vector<ColumnValue> colours = column_values(columns[1], {}, 2);
  EXPECT_EQ(texts(colours), (std::vector<std::string>{"red", "(missing)"}));
  EXPECT_EQ(colours[1].features, (std::vector<Scalar>{0, 0, 1, 0})) << "the first is for others";
  EXPECT_EQ(column_values(columns[3], {}, 9).back().features, std::vector<Scalar>{3});
  expect_parts(error_text<ConfigError>([&] { column_values(columns[2], {}, 9); }),
               {"'zip' is hashed", "onehot"});
}

TEST(ColumnValues, OfDatesMoveAllTheirFeatures) {
  TableColumn date = numeric("date");
  date.scale = Scale::kNone;
  date.date = DateReading{.form = DateForm::kYmd, .parts = {DatePart::kDay, DatePart::kWeekday}};
  const FeatureColumn column{.name = "date", .features = {0, 3}, .table = date};
  const double day = parse_date("2024-02-29", DateForm::kYmd).value();
  const std::vector<ColumnValue> values = column_values(column, {static_cast<Scalar>(day)}, 5);
  EXPECT_EQ(texts(values), std::vector<std::string>{"2024-02-29"});
  const auto weekday = cycle_of(day, DatePart::kWeekday);
  EXPECT_EQ(values.front().features,
            (std::vector<Scalar>{static_cast<Scalar>(day), static_cast<Scalar>(weekday[0]),
                                 static_cast<Scalar>(weekday[1])}));
  FeatureColumn holiday = column;
  holiday.table->date->parts = {DatePart::kDay, DatePart::kDayOfYear};
  const std::vector<Scalar> moved = column_values(holiday, {static_cast<Scalar>(day)}, 5).front().features;
  ASSERT_EQ(moved.size(), 367U);
  for (std::size_t i = 1; i < moved.size(); ++i) EXPECT_EQ(moved[i], i == 1 + 59 ? 1 : 0) << i;
  FeatureColumn month = column;
  month.table->date->parts = {DatePart::kMonth};
  expect_parts(error_text<ConfigError>([&] { column_values(month, {0}, 5); }),
               {"date(ymd, month)", "in order"});
}

}  // namespace lockstep::test::feature_columns_test
