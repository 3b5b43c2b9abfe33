// A schema as JSON and as lines for people; what comes out of one: cases/tables.case, kinds.case, bins.case.
#include "lockstep/data/table/values/schema.h"

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test::table_schema_test {

class Schema : public testing::Test {
 protected:
  TableSchema learn(const std::string& text) const {
    const std::string paths[] = {directory_ / "t.csv"};
    std::ofstream(paths[0], std::ios::binary) << text;
    TableText table = open_table_text(paths, options_, alone());
    return learn_schema(table, options_, "t.csv", nullptr, alone()).schema;
  }
  TemporaryDirectory directory_;
  TableOptions options_{.label = {"y"}};
};

TEST_F(Schema, IsReadBackAndKeepsItsNumbers) {
  options_.columns = {"c: index", "m: constant(0.1) log", "h: categorical hash(8)", "i: ignore"};
  const TableSchema schema = learn("c,m,h,i,y\nred,0.1,1,x,0\nblue,,2,x,1\n\"gr\xc3\xbcn\",7,1,x,1\n");
  EXPECT_EQ(to_json(parse_schema(to_json(schema), "s.json")), to_json(schema));
  EXPECT_EQ(schema.features(), 10);
}

TEST_F(Schema, ThatDoesNotFitIsRefused) {
  options_.scale = "robust bins(4)";
  const std::string json = to_json(learn("a,y\n0,0\n10,1\n20,0\n30,1\n40,0\n"));
  std::vector<std::string> wrong{"x", "{}", R"({"version": 2})",
                                 R"({"version": 1, "missing_values": [], "columns": [{"name": 3}]})"};
  for (const auto& [part, replacement] : {std::pair{"\"max\": 4", "\"max\": 1"},
                                          {"\"max\": 4", "\"max\": 3"},
                                          {"\"edges\": [", "\"edges\": [1e300, "},
                                          {"\"quartiles\"", "\"quarters\""}}) {
    const std::size_t place = json.find(part);
    ASSERT_NE(place, std::string::npos) << part;
    wrong.push_back(std::string(json).replace(place, std::string(part).size(), replacement));
  }
  for (const std::string& text : wrong) {
    expect_parts(error_text<DataError>([&] { parse_schema(text, "s.json"); }), {"'s.json' is no schema"});
  }
}

TEST_F(Schema, DescribesAColumnByItsFigures) {
  options_.columns = {"b: minmax", "c: log", "y: standard"};
  const TableSchema schema = learn("a,b,c,kind,y\n1,5,1,red,10\n,7,3,blue,20\n4,9,7,red,60\n");
  expect_parts(fmt::format("{}", fmt::join(schema.describe(), "\n")),
               {"0  a: number, mean 2.5, deviation 1.5, 1 missing become the mean",
                "1  b: number, from 5 to 9", "2  c: number, logarithm, mean 1.386, deviation 0.566",
                "kind: one-hot of 2 values", "label  y: number, standard: mean 30, deviation 21.6"});
}

TEST_F(Schema, SaysWhichLabelIsScaledAndHow) {
  const std::string text = "a,y,x\n1,2,3\n4,5,6\n";
  EXPECT_EQ(describe_scaled_label(learn(text)), "");
  EXPECT_TRUE(label_scales(learn(text)).empty());
  options_.label = {"a", "y"};
  options_.columns = {"y: standard"};
  EXPECT_EQ(describe_scaled_label(learn(text)), "y: standard");
  const std::vector<LabelScale> scales = label_scales(learn(text));
  ASSERT_EQ(scales.size(), 2U);
  EXPECT_EQ(scales[0].undo(4), 4) << "the other label stays";
  EXPECT_EQ(scales[1].undo(0), 3.5);
  EXPECT_TRUE(read_label_scales("").empty());
  EXPECT_TRUE(read_label_scales("{\"version\": 1, \"format\": \"libsvm\"}").empty());
}

// The page of a run shows the numbers of records.
TEST_F(Schema, TellsTheNumberOfBins) {
  options_.scale = "bins(4)";
  const TableSchema schema = learn("a,y\n1,0\n2,1\n4,0\n8,1\n16,0\n32,1\n64,0\n");
  const FeatureColumn column = feature_columns(to_json(schema), schema.columns[0].width()).front();
  for (const double number : {1, 2, 4, 8, 16, 32, 64, 3, 100}) {
    std::vector<Scalar> features(static_cast<std::size_t>(schema.features()));
    put_bins(static_cast<Scalar>(bin_position(schema.columns[0].edges, number)), schema.features(),
             features.data());
    EXPECT_EQ(value_text(column, features), fmt::format("{:g}", std::min(number, 64.0)));
  }
}

// The past and, of a column that is known ahead, the horizon; one value of what names the series.
TEST_F(Schema, ColumnsOfWindowsHaveAFeatureForEachPosition) {
  options_.categorical = {"shop"};
  TableSchema schema = learn("shop,y,x\na,1,2\nb,3,4\n");
  schema.windows = TableWindows{.window = 4, .horizon = 3, .series = {"shop"}, .future = {"x"}};
  const std::vector<FeatureColumn> columns = feature_columns_of(schema);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(std::tuple(columns[0].features, columns[1].name, columns[1].features, columns[2].features),
            std::tuple((Range{0, 4}), "x", (Range{4, 11}), (Range{11, 14})));
}

}  // namespace lockstep::test::table_schema_test
