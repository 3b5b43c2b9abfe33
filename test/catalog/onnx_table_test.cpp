// ONNX models of tables: from the columns, as a file has them, to the answer. Features are those of Encoder,
// answers those of a prediction.
#include "catalog/exported_onnx.h"
#include "catalog/onnx_evaluator.h"
#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/random.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "support/error_text.h"
#include "support/exportable_model.h"
#include "support/temporary_directory.h"
#include "support/text_lines.h"
#include "train/storage/exporters/onnx/graph.h"

namespace lockstep::onnx_table_test {
namespace {

using namespace test;
using Texts = std::vector<std::string>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

OnnxTensor floats(const std::vector<double>& values) {
  return {.dims = {std::ssize(values), 1}, .values = values, .type = onnx::TensorProto::FLOAT};
}

OnnxTensor doubles(const std::vector<double>& values) {
  return {.dims = {std::ssize(values), 1}, .values = values, .type = onnx::TensorProto::DOUBLE};
}

OnnxTensor numbers(const std::vector<double>& values) {
  return {.dims = {std::ssize(values), 1}, .values = values, .type = onnx::TensorProto::INT64};
}

OnnxTensor texts(const Texts& values) {
  return {.dims = {std::ssize(values), 1}, .values = {}, .texts = values, .type = onnx::TensorProto::STRING};
}

class OnnxTable : public testing::Test {
 protected:
  // Learns the columns of `training`.
  void learn(const std::string& training) {
    TableText table = open("t.csv", training);
    schema_ = learn_schema(table, options_, "t.csv", nullptr, alone()).schema;
  }

  // The features of the records of a file without labels.
  std::vector<Scalar> encoded(const std::string& records) {
    TableText table = open("r.csv", records);
    find_chunks(table.text);
    const Encoder encoder(schema_, false);
    const std::vector<RowColumn> columns = match_columns(table, schema_, false);
    TableReader reader(table, columns, std::ssize(schema_.columns), schema_.missing_values);
    std::vector<Scalar> rows;
    std::vector<std::byte> packed(static_cast<std::size_t>(encoder.record_bytes()));
    std::vector<Index> unseen(schema_.columns.size());
    for (const TextChunk& chunk : table.text.chunks) {
      reader.for_each_record(
          chunk,
          [&](std::span<const Cell> cells) {
            encoder.pack(cells, packed.data(), unseen);
            const std::size_t before = rows.size();
            rows.resize(before + static_cast<std::size_t>(encoder.features()));
            encoder.unpack(packed.data(), rows.data() + before, nullptr);
          },
          [](const std::string& bad) { ADD_FAILURE() << bad; });
    }
    return rows;
  }

  // A model of the features, with weights that keep its outputs apart.
  ExportableModel model(Index outputs) const {
    const Index features = feature_columns_of(schema_).back().features.end;
    ExportableModel made(fmt::format("dense({})", outputs), {{features}});
    RandomStream random({.seed = 5});
    for (Scalar& value : made.stored.span()) value = random.normal();
    return made;
  }

  ModelToExport to_export(ExportableModel& model, const OutputForm& form) const {
    ModelToExport exported = model.to_export(form);
    exported.schema = &schema_;
    exported.label_scales = scales_;
    return exported;
  }

  // All values of the graph of a model with so many outputs.
  OnnxValues computed(Index outputs, const OutputForm& form, const OnnxValues& inputs) {
    scales_ = label_scales(schema_);
    ExportableModel made = model(outputs);
    const onnx::ModelProto file = export_onnx(to_export(made, form));
    graph_ = file.graph();
    return evaluate(graph_, inputs);
  }

  // What the first layer takes.
  const OnnxTensor& features_in(const OnnxValues& values) const {
    const auto layer = std::ranges::find(graph_.node(), "Gemm", &onnx::NodeProto::op_type);
    return values.at(layer->input(0));
  }

  void expect_features(const OnnxValues& inputs, const std::string& records) {
    const OnnxValues values = computed(2, TargetKind::kClass, inputs);
    const OnnxTensor& found = features_in(values);
    const std::vector<Scalar> expected = encoded(records);
    EXPECT_EQ(found.type, onnx::TensorProto::FLOAT);
    ASSERT_EQ(found.values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.values[i], static_cast<double>(expected[i]), 1e-6) << "number " << i;
  }

  TemporaryDirectory directory_;
  TableOptions options_{.label = {"y"}};
  TableSchema schema_;
  std::vector<LabelScale> scales_;
  onnx::GraphProto graph_;

 private:
  TableText open(const std::string& name, const std::string& text) {
    const std::string paths[] = {directory_ / name};
    std::ofstream(paths[0], std::ios::binary) << text;
    return open_table_text(paths, options_, alone());
  }
};

TEST_F(OnnxTable, NumbersBecomeFeaturesByTheirScale) {
  options_.columns = {"a: none", "b: minmax", "c: log", "d: log constant(-3)", "e: standard constant(7)"};
  learn("a,b,c,d,e,y\n1,2,-30,4,5,0\n3,-6,700,8,2,1\n-5,,,2,,1\n");
  expect_features({{"a", floats({4, -2.5, kMissing})},
                   {"b", floats({1, kMissing, 9})},
                   {"c", floats({-1000, 2, kMissing})},
                   {"d", floats({0, kMissing, 5})},
                   {"e", floats({kMissing, 1, -1})}},
                  "a,b,c,d,e\n4,1,-1000,0,\n-2.5,,2,,1\n,9,,5,-1\n");
}

TEST_F(OnnxTable, WindowsHaveThePositionsOfEachColumn) {
  options_.columns = {"y: standard", "s: categorical", "c: categorical"};
  options_.ignore = {"t"};
  options_.windows = {.time = "t", .series = {"s"}, .window = 2, .horizon = 1, .future = {"a"}};
  learn("s,t,a,c,y\nu,1,4,red,1\nu,2,6,blue,3\nv,1,5,red,8\nv,2,7,red,4\n");
  const std::vector<Scalar> rows = encoded("s,t,a,c\nv,1,4.5,blue\nv,2,9,red\nv,3,-1,red\n");
  constexpr std::size_t kRow = 1 + 3 + 3;  // a, s, c, each category with one place for others
  ASSERT_EQ(rows.size(), 3 * kRow);
  const LabelScale label = label_scales(schema_).front();
  std::vector<double> expected{label.scaled(2), label.scaled(7), rows[0], rows[kRow], rows[2 * kRow]};
  for (std::size_t place = 4; place < kRow; ++place) {
    for (const std::size_t row : {0, 1}) expected.push_back(double{rows[row * kRow + place]});
  }
  for (std::size_t place = 1; place < 4; ++place) expected.push_back(double{rows[place]});
  const auto of_window = [](OnnxTensor tensor) {
    tensor.dims = {1, tensor.dims.front()};
    return tensor;
  };
  const OnnxValues values = computed(1, TargetKind::kValue,
                                     {{"y", of_window(floats({2, 7}))},
                                      {"a", of_window(floats({4.5, 9, -1}))},
                                      {"c", of_window(texts({"blue", "red"}))},
                                      {"s", texts({"v"})}});
  const OnnxTensor& found = features_in(values);
  ASSERT_EQ(found.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found.values[i], expected[i], 1e-6) << i;
}

TEST_F(OnnxTable, NumbersBecomeBinsAndAreClippedSmoothly) {
  options_.columns = {"a: bins(2)",     "b: robust bins(8)",      "c: robust",
                      "d: log bins(2)", "e: bins(4) constant(2)", "f: bins(4)"};
  options_.numeric = {"f"};
  learn("a,b,c,d,e,f,y\n1,2,-30,4,5,3,0\n3,-6,700,8,2,3,1\n-5,,,2,,3,1\n9,1,1,9,4,3,0\n2,7,7,7,7,3,1\n");
  expect_features({{"a", floats({4, -100, kMissing})},
                   {"b", floats({1, kMissing, 9})},
                   {"c", floats({-1e6, 2, kMissing})},
                   {"d", floats({0, kMissing, 5})},
                   {"e", floats({kMissing, 3, -1})},
                   {"f", floats({3, 4, kMissing})}},
                  "a,b,c,d,e,f\n4,1,-1e6,0,,3\n-100,,2,,3,4\n,9,,5,-1,\n");
}

// What stands for a missing number is scaled as the others are: by its logarithm, clipped, in bins.
TEST_F(OnnxTable, AConstantForAMissingNumberIsScaledAsTheOthers) {
  options_.columns = {"a: log bins(2) constant(3)", "b: robust constant(50)", "c: log bins(3)",
                      "d: log constant(3)", "e: minmax constant(3)"};
  learn("a,b,c,d,e,y\n0,0,0,0,0,0\n1,1,1,1,1,1\n7,7,7,7,7,0\n20,20,20,20,20,1\n50,50,50,50,50,0\n");
  // In the bin from 0 to the logarithm of 1 + 7.
  const auto is_in_bin = [](Scalar feature) {
    return std::abs(double{feature} - std::log(4) / std::log(8)) < 1e-6;
  };
  EXPECT_TRUE(std::ranges::any_of(encoded("a,b,c,d,e\n,,,,\n"), is_in_bin));
  expect_features({{"a", floats({kMissing, -2})},
                   {"b", floats({kMissing, -2})},
                   {"c", floats({kMissing, -2})},
                   {"d", floats({kMissing, -2})},
                   {"e", floats({kMissing, -2})}},
                  "a,b,c,d,e\n,,,,\n-2,-2,-2,-2,-2\n");
}

TEST_F(OnnxTable, NumbersWithAUnitAreGivenWithoutIt) {
  options_.columns = {"share: number(suffix=\"%\")"};
  learn("share,y\n12 %,0\n30 %,1\n7.5 %,0\n");
  expect_features({{"share", floats({50, kMissing})}}, "share\n50 %\nNA\n");
  EXPECT_FALSE(column_inputs(schema_)[0].as_is);
}

TEST_F(OnnxTable, CategoriesBecomeFeaturesByTheirEncoding) {
  options_.columns = {"c: categorical", "d: categorical index", "e: categorical missing(none, NA)"};
  options_.missing_values = {"", "NA", "?"};
  learn("c,d,e,y\nred,x,u,0\nred,,none,1\nblue,z,v,1\n?,z,v,0\n007,z,u,0\n");
  expect_features({{"c", texts({"blue", "", "green", "?", "007", "none"})},
                   {"d", texts({"z", "x", "NA", "w", "", "none"})},
                   {"e", texts({"none", "u", "NA", "w", "", "v"})}},
                  "c,d,e\nblue,z,none\n\"\",x,u\ngreen,NA,NA\n?,w,w\n007,,\nnone,none,v\n");
}

TEST_F(OnnxTable, ATextForAMissingValueIsNoCategoryWhereTrainingHadNone) {
  options_.columns = {"c: categorical"};
  learn("c,y\nred,0\nblue,1\n");
  expect_features({{"c", texts({"", "NA", "red"})}}, "c\n\"\"\nNA\nred\n");
}

TEST_F(OnnxTable, OneHashedColumnIsGivenByItsBucket) {
  options_.columns = {"h: categorical hash(7)"};
  learn("h,y\na,0\nb,1\n");
  const auto bucket = [](const char* text) { return static_cast<double>(hash_text(text) % 7); };
  expect_features({{"h", numbers({bucket("a"), bucket("never seen"), bucket("")})}},
                  "h\na\nnever seen\nNA\n");
  const ColumnInput input = column_inputs(schema_)[0];
  EXPECT_FALSE(input.as_is);
  expect_parts(input.help, {"XXH3", "modulo 7"});
}

TEST_F(OnnxTable, DatesAreGivenByTheNumberOfTheDay) {
  options_.columns = {"when: date(ymd, day, day_of_year, year, month, weekday, hour)",
                      "at: date(time, hour)"};
  learn("when,at,y\n2020-01-01,1:00,0\n2024-02-29 18:30,13:30,1\n1969-12-31,2:00,1\n");
  const double day = *parse_date("2023-03-01T06:00", DateForm::kYmd);
  expect_features({{"when", doubles({day, kMissing})}, {"at", doubles({0.25, kMissing})}},
                  "when,at\n2023-03-01T06:00,06:00\n,\n");
}

TEST_F(OnnxTable, FeaturesComeInTheOrderOfTheSchema) {
  options_.columns = {"c: categorical", "when: date(ymd, day)", "b: log"};
  learn("c,a,when,b,d,y\nu,1,2020-01-01,2,3,0\nv,5,2021-01-01,4,9,1\n");
  expect_features({{"c", texts({"v"})},
                   {"a", floats({2})},
                   {"when", doubles({18300})},
                   {"b", floats({3})},
                   {"d", floats({4})}},
                  "c,a,when,b,d\nv,2,2020-02-08,3,4\n");
}

TEST(OnnxCalendar, HasTheDaysOfAllYears) {
  onnx::GraphProto proto;
  OnnxGraph graph(proto);
  graph.add_input({.name = "days", .sample = {{1}}, .type = onnx::TensorProto::DOUBLE});
  const std::vector<double> days = [] {
    std::vector<double> list;
    for (double day = *parse_date("1583-01-01", DateForm::kYmd); day < 200'000; day += 97.37)
      list.push_back(day);
    for (const char* edge :
         {"1999-12-31", "2000-01-01", "2000-02-29", "2000-03-01", "2000-12-31", "1900-02-28", "1900-03-01",
          "2023-12-31T23:59:59", "2024-12-31", "0000-03-01", "1970-01-01"}) {
      list.push_back(*parse_date(edge, DateForm::kYmd));
    }
    return list;
  }();
  graph.begin_layer("day_of_year");
  const std::string day = add_day_of_year(graph, "days");
  const std::vector<double> is_day = evaluate(proto, doubles(days)).at(day).values;
  ASSERT_EQ(is_day.size(), days.size() * static_cast<std::size_t>(kDaysOfYear));
  for (std::size_t i = 0; i < is_day.size(); ++i) {
    const Index expected = day_of_year(days[i / kDaysOfYear]);
    ASSERT_EQ(is_day[i], static_cast<Index>(i % kDaysOfYear) == expected ? 1 : 0) << days[i / kDaysOfYear];
  }
  for (const DatePart part : {DatePart::kYear, DatePart::kMonth, DatePart::kWeekday, DatePart::kHour}) {
    graph.begin_layer(fmt::format("{}", static_cast<int>(part)));
    const auto [sine, cosine] = add_cycle(graph, "days", part);
    const OnnxValues values = evaluate(proto, doubles(days));
    for (std::size_t i = 0; i < days.size(); ++i) {
      const auto expected = cycle_of(days[i], part);
      ASSERT_NEAR(values.at(sine).values[i], expected[0], 1e-6) << days[i];
      ASSERT_NEAR(values.at(cosine).values[i], expected[1], 1e-6) << days[i];
    }
  }
}

TEST_F(OnnxTable, TheAnswerIsTheNameOfTheClass) {
  learn("a,y\n1,low\n2,high\n3,mid\n4,low\n");
  const OnnxValues values = computed(3, TargetKind::kClass, {{"a", floats({-3, 0, 1, 9, kMissing})}});
  const Texts classes{"high", "low", "mid"};
  const std::vector<double>& outputs = values.at("outputs").values;
  const std::vector<double>& probabilities = values.at("probabilities").values;
  EXPECT_EQ(values.at("label").dims, (List{5}));
  for (std::size_t row = 0; row < 5; ++row) {
    const auto first = outputs.begin() + static_cast<Index>(3 * row);
    const auto best = static_cast<std::size_t>(std::max_element(first, first + 3) - first);
    EXPECT_EQ(values.at("label").texts[row], classes[best]);
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += probabilities[3 * row + i];
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST_F(OnnxTable, TheAnswerToYesOrNoIsOneOfTheTwoTexts) {
  learn("a,y\n1,false\n2,true\n3,true\n");
  const OnnxValues values = computed(1, TargetKind::kBinary, {{"a", floats({-9, 9, 0})}});
  EXPECT_EQ(values.at("label").dims, (List{3}));
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(values.at("label").texts[row], values.at("outputs").values[row] > 0 ? "true" : "false");
    const double yes = 1 / (1 + std::exp(-values.at("outputs").values[row]));
    EXPECT_NEAR(values.at("probabilities").values[2 * row + 1], yes, 1e-9);
    EXPECT_NEAR(values.at("probabilities").values[2 * row], 1 - yes, 1e-9);
  }
}

TEST_F(OnnxTable, TheThresholdDecidesBetweenNoAndYes) {
  learn("a,y\n1,no\n2,yes\n3,yes\n");
  for (const Index outputs : {Index{1}, Index{2}}) {
    const OutputForm form(outputs == 1 ? TargetKind::kBinary : TargetKind::kClass);
    for (const double threshold : {0.05, 0.5, 0.95}) {
      ExportableModel made = model(outputs);
      ModelToExport exported = to_export(made, form);
      exported.threshold = threshold;
      const OnnxValues values =
          evaluate(export_onnx(exported).graph(), {{"a", floats({-4, -2, 0, 1, 2, 3, 5})}});
      for (std::size_t row = 0; row < 7; ++row) {
        const bool yes = values.at("probabilities").values[2 * row + 1] >= threshold;
        EXPECT_EQ(values.at("label").texts[row], yes ? "yes" : "no") << outputs << " outputs, " << threshold;
      }
    }
  }
}

// Targets that are numbers come before those that are categories.
TEST_F(OnnxTable, SeveralAnswersHaveTheNamesOfTheirColumns) {
  options_.label = {"y", "z"};
  learn("a,y,z\n1,yes,0\n2,no,1\n3,no,1\n");
  const OnnxValues values = computed(2, TargetKind::kBinary, {{"a", floats({-9, 9, 0})}});
  EXPECT_EQ(values.at("label").dims, (List{3, 2}));
  for (std::size_t i = 0; i < 6; ++i) {
    const bool yes = values.at("outputs").values[i] > 0;
    EXPECT_EQ(values.at("label").texts[i], i % 2 == 0 ? (yes ? "1" : "0") : (yes ? "yes" : "no")) << i;
  }
}

TEST_F(OnnxTable, LabelsOfProbabilitiesNameTheClasses) {
  options_.label = {"sun", "rain"};
  learn("a,sun,rain\n1,0.5,0.5\n2,0,1\n3,1,0\n");
  const OnnxValues values = computed(2, TargetKind::kClass, {{"a", floats({5})}});
  const std::vector<double>& outputs = values.at("outputs").values;
  EXPECT_EQ(values.at("label").texts[0], outputs[0] >= outputs[1] ? "sun" : "rain");
}

TEST_F(OnnxTable, TheAnswerIsInTheUnitsOfTheLabel) {
  options_.label = {"price", "size"};
  options_.columns = {"price: log"};
  learn("a,price,size\n1,1000,3\n2,50,2\n3,200000,1\n");
  const OnnxValues values = computed(2, TargetKind::kValue, {{"a", floats({1, 2, 5})}});
  EXPECT_FALSE(values.contains("label"));
  for (std::size_t i = 0; i < 6; ++i) {
    const auto output = static_cast<Scalar>(values.at("outputs").values[i]);
    const double expected = scales_[i % 2].undo(double{output});
    EXPECT_NEAR(values.at("predictions").values[i], expected, 1e-5 * std::abs(expected)) << i;
  }
}

TEST_F(OnnxTable, NumbersThatNeedNothingUndoneAreTheAnswerToo) {
  learn("a,y\n1,10\n2,20\n3,15\n");
  const OnnxValues values = computed(1, TargetKind::kValue, {{"a", floats({1, 2})}});
  EXPECT_EQ(values.at("predictions").values, values.at("outputs").values);
  const OnnxValues counts = computed(1, {TargetKind::kValue, Link::kLog}, {{"a", floats({1})}});
  EXPECT_NEAR(counts.at("predictions").values[0], std::exp(counts.at("outputs").values[0]), 1e-9);
}

// Names of columns are the data's; whatever else has such a name gets another.
TEST_F(OnnxTable, ColumnsKeepTheirNames) {
  learn("label,outputs,0.weight,columns/Cast,y\n1,5,3,2,u\n2,4,9,1,v\n3,1,0,0,u\n");
  const OnnxValues values = computed(2, TargetKind::kClass,
                                     {{"label", floats({1})},
                                      {"outputs", floats({2})},
                                      {"0.weight", floats({3})},
                                      {"columns/Cast", floats({4})}});
  EXPECT_EQ(values.at("label_").texts.size(), 1U);
  EXPECT_EQ(values.at("outputs_").values.size(), 2U);
  EXPECT_EQ(values.at("probabilities").values.size(), 2U);
  std::set<std::string> names;
  for (const auto& input : graph_.input()) EXPECT_TRUE(names.insert(input.name()).second);
  for (const auto& tensor : graph_.initializer())
    EXPECT_TRUE(names.insert(tensor.name()).second) << tensor.name();
  for (const auto& node : graph_.node()) EXPECT_TRUE(names.insert(node.output(0)).second) << node.output(0);
}

TEST_F(OnnxTable, InputsAreTheColumnsThatAreFeatures) {
  options_.columns = {"c: categorical", "h: categorical hash(3)", "when: date(ymd)", "id: ignore"};
  options_.weight = "w";
  learn("id,c,y,n,w,h,when\na,r,0,1,1,p,2020-01-01\nb,s,1,2,1,q,2020-02-01\n");
  ExportableModel made = model(2);
  const onnx::ModelProto file = export_onnx(to_export(made, TargetKind::kClass));
  Texts inputs;
  for (const auto& input : file.graph().input()) {
    const auto& type = input.type().tensor_type();
    EXPECT_EQ(type.shape().dim(0).dim_param(), "N");
    EXPECT_EQ(type.shape().dim(1).dim_value(), 1);
    EXPECT_FALSE(input.doc_string().empty());
    inputs.push_back(fmt::format("{}: {}", input.name(),
                                 to_string(static_cast<onnx::TensorProto_DataType>(type.elem_type()))));
  }
  EXPECT_EQ(inputs, (Texts{"c: string", "n: float", "h: int64", "when: double"}));
  ASSERT_EQ(file.opset_import_size(), 2);
  EXPECT_EQ(file.opset_import(1).domain(), "ai.onnx.ml");
}

TEST_F(OnnxTable, TheFileSaysWhatItTakesAndGives) {
  learn("a,b,y\n1,u,low\n2,v,high\n3,u,low\n");
  ExportableModel made = model(2);
  ModelToExport exported = to_export(made, TargetKind::kClass);
  exported.facts = {{"metric", R"({"kept":{}})"}};
  std::map<std::string, std::string> found;
  const onnx::ModelProto file = export_onnx(exported);
  for (const auto& entry : file.metadata_props()) found[entry.key()] = entry.value();
  const auto columns = parse_json<nlohmann::json>(found.at("columns"));
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[1]["name"], "b");
  EXPECT_EQ(columns[1]["type"], "string");
  EXPECT_EQ(found.at("classes"), R"([["low","high"]])") << "the rare class is yes, and second";
  EXPECT_EQ(found.at("targets"), R"(["y"])");
  EXPECT_EQ(found.at("outputs"), R"(["low","high"])");
  EXPECT_EQ(found.at("metric"), R"({"kept":{}})");
  expect_parts(found.at("versions"), {R"("lockstep")", R"("ai.onnx":13)", R"("ai.onnx.ml":2)"});

  OutputForm levels(TargetKind::kValue);
  levels.quantiles = {0.1, 0.9};
  learn("a,y\n1,5\n2,6\n");
  ExportableModel of_levels = model(2);
  const onnx::ModelProto file_of_levels = export_onnx(to_export(of_levels, levels));
  for (const auto& entry : file_of_levels.metadata_props()) {
    if (entry.key() == "outputs") {
      EXPECT_EQ(entry.value(), R"(["y_q0.1","y_q0.9"])");
    }
    EXPECT_NE(entry.key(), "classes");
  }
}

TEST_F(OnnxTable, TheFeaturesMayBeTheInput) {
  learn("a,b,y\n1,u,low\n2,v,high\n3,u,low\n");
  ExportableModel made = model(2);
  const onnx::ModelProto file = export_onnx(to_export(made, TargetKind::kClass), "onnx_features");
  ASSERT_EQ(file.graph().input_size(), 1);
  EXPECT_EQ(file.graph().input(0).name(), "input");
  EXPECT_EQ(file.graph().input(0).type().tensor_type().shape().dim(1).dim_value(), 4);
  EXPECT_EQ(file.opset_import_size(), 1);
}

TEST_F(OnnxTable, NumbersThatAFloatCannotTellApartAreDoubted) {
  learn("a,b,y\n1700000001,2019,0\n1700000002,2020,1\n1700000003,2021,0\n");
  const std::vector<ColumnInput> inputs = column_inputs(schema_);
  expect_parts(inputs[0].doubt, {"1700000001", "float32", "subtract 1700000002"});
  EXPECT_EQ(inputs[1].doubt, "");
}

TEST_F(OnnxTable, ASchemaOfAnotherModelIsRefused) {
  learn("a,y\n1,0\n2,1\n");
  ExportableModel made("dense(2)", {{5}});
  expect_parts(error_text<DataError>([&] { export_onnx(to_export(made, TargetKind::kClass)); }),
               {"schema", "takes 5"});
}

}  // namespace
}  // namespace lockstep::onnx_table_test
