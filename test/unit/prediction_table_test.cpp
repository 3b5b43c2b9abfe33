// What of a prediction is written, and under which names.
#include "lockstep/train/evaluation/prediction.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::test::prediction_table_test {

using Texts = std::vector<std::string>;

OutputForm quantiles() {
  OutputForm form(TargetKind::kValue);
  form.quantiles = {0.05, 0.9};
  return form;
}

Texts names(const OutputForm& form, Index outputs, const std::vector<TargetLabel>& labels,
            const PredictionView& view = {}) {
  check_view(view, form, outputs);
  const PredictionTable table(form, outputs, labels, view);
  Texts names;
  for (const PredictionColumn& column : table.columns()) names.push_back(column.name);
  return names;
}

// The cells of a row with these outputs; a class by its name.
Texts cells(const OutputForm& form, const std::vector<Scalar>& outputs,
            const std::vector<TargetLabel>& labels, const PredictionView& view = {}) {
  const auto count = std::ssize(outputs);
  std::vector<Scalar> row(static_cast<std::size_t>(prediction_columns(form, count).size()));
  Matrix predictions(row.data(), 1, std::ssize(row));
  predict_rows(form, ConstMatrix(outputs.data(), 1, count), predictions);
  PredictionTable table(form, count, labels, view);
  const PredictedRows converted = table.convert(ConstMatrix(row.data(), 1, std::ssize(row)));
  Texts cells;
  for (Index i = 0; i < converted.cols(); ++i) {
    const auto& classes = table.columns()[static_cast<std::size_t>(i)].classes;
    cells.push_back(classes ? at(*classes, static_cast<Index>(converted(0, i)))
                            : fmt::format("{:.4g}", converted(0, i)));
  }
  return cells;
}

const std::vector<TargetLabel> kKinds{{.name = "kind", .classes = {"low", "mid", "high"}}};
const std::vector<TargetLabel> kIncome{{.name = "income", .classes = {"<=50K", ">50K"}}};
const std::vector<TargetLabel> kPrice{{.name = "price"}};
const std::vector<TargetLabel> kTwo{{.name = "a"}, {.name = "b", .classes = {"off", "on"}}};

TEST(PredictionTable, NamesColumnsByClassTargetAndLevel) {
  EXPECT_EQ(names(TargetKind::kClass, 3, kKinds), (Texts{"prediction", "p_low", "p_mid", "p_high"}));
  EXPECT_EQ(names(TargetKind::kClass, 4, kKinds), (Texts{"prediction", "p_low", "p_mid", "p_high", "p_3"}));
  EXPECT_EQ(names(TargetKind::kClass, 2, {}), (Texts{"prediction", "p_0", "p_1"}));
  EXPECT_EQ(names(TargetKind::kClass, 2, kTwo), (Texts{"prediction", "p_a", "p_b"}))
      << "labels that are the probabilities of classes";
  EXPECT_EQ(names({TargetKind::kClass, Link::kIdentity}, 3, kKinds),
            (Texts{"prediction", "score_low", "score_mid", "score_high"}));
  EXPECT_EQ(names(TargetKind::kBinary, 1, kIncome), (Texts{"prediction", "p_<=50K", "p_>50K"}));
  EXPECT_EQ(names(TargetKind::kBinary, 1, {}), (Texts{"prediction", "p_0", "p_1"}));
  EXPECT_EQ(names({TargetKind::kBinary, Link::kIdentity}, 1, kIncome), (Texts{"prediction", "score_>50K"}));
  EXPECT_EQ(names(TargetKind::kBinary, 2, kTwo), (Texts{"a", "b", "p_a", "p_b"}));
  EXPECT_EQ(names(TargetKind::kBinary, 2, {}), (Texts{"target0", "target1", "p_target0", "p_target1"}));
  EXPECT_EQ(names(TargetKind::kValue, 1, kPrice), (Texts{"prediction"}));
  EXPECT_EQ(names(TargetKind::kValue, 2, kTwo), (Texts{"a", "b"}));
  EXPECT_EQ(names(quantiles(), 2, kPrice), (Texts{"q0.05", "q0.9"}));
  EXPECT_EQ(names(quantiles(), 4, kTwo), (Texts{"a_q0.05", "a_q0.9", "b_q0.05", "b_q0.9"}));
}

TEST(PredictionTable, GivesTheNameOfTheClass) {
  EXPECT_EQ(cells(TargetKind::kClass, {0, 100, 0}, kKinds), (Texts{"mid", "0", "1", "0"}));
  EXPECT_EQ(cells(TargetKind::kBinary, {0}, kIncome), (Texts{"<=50K", "0.5", "0.5"})) << "more than no";
  EXPECT_EQ(cells(TargetKind::kBinary, {1}, kIncome), (Texts{">50K", "0.2689", "0.7311"}));
  EXPECT_EQ(cells(TargetKind::kBinary, {1, -1}, kTwo), (Texts{"1", "off", "0.7311", "0.2689"}));
}

TEST(PredictionTable, GivesTheProbabilitiesOfAllClassesAlone) {
  const PredictionView view{.probabilities = true};
  EXPECT_EQ(names(TargetKind::kClass, 3, kKinds, view), (Texts{"p_low", "p_mid", "p_high"}));
  EXPECT_EQ(cells(TargetKind::kBinary, {1}, kIncome, view), (Texts{"0.2689", "0.7311"}));
  EXPECT_EQ(names(TargetKind::kBinary, 2, kTwo, view), (Texts{"p_a", "p_b"}));
  EXPECT_EQ(names(TargetKind::kBinary, 1, kIncome, {.outputs_only = true}), (Texts{"prediction", "p_>50K"}));
}

TEST(PredictionTable, SaysYesFromTheThresholdOn) {
  EXPECT_EQ(cells(TargetKind::kBinary, {0}, kIncome, {.threshold = 0.5}).front(), ">50K");
  EXPECT_EQ(cells(TargetKind::kBinary, {0}, kIncome, {.threshold = 0.50001}).front(), "<=50K");
  EXPECT_EQ(cells(TargetKind::kBinary, {-1, -3}, kTwo, {.threshold = 0.2})[0], "1");
  EXPECT_EQ(cells(TargetKind::kBinary, {-1, -3}, kTwo, {.threshold = 0.2})[1], "off");
  EXPECT_EQ(cells(TargetKind::kClass, {1, 0}, kIncome, {.threshold = 0.25}).front(), ">50K")
      << "the second of two classes";
}

TEST(PredictionTable, GivesTheMostProbableClassesOfEqualOnesTheLowerFirst) {
  EXPECT_EQ(names(TargetKind::kClass, 3, kKinds, {.top = 2}), (Texts{"top1", "p_top1", "top2", "p_top2"}));
  EXPECT_EQ(cells(TargetKind::kClass, {0, 1, 1}, kKinds, {.top = 3}),
            (Texts{"mid", "0.4223", "high", "0.4223", "low", "0.1554"}));
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  EXPECT_EQ(cells({TargetKind::kClass, Link::kIdentity}, {nan, 2, 3}, kKinds, {.top = 3}),
            (Texts{"high", "3", "mid", "2", "low", "nan"}));
}

TEST(PredictionTable, RefusesWhatTheOutputsDoNotHave) {
  const auto refusal = [](const PredictionView& view, const OutputForm& form, Index outputs) {
    return error_text<ConfigError>([&] { check_view(view, form, outputs); });
  };
  const OutputForm scores(TargetKind::kClass, Link::kIdentity);
  expect_parts(refusal({.probabilities = true}, TargetKind::kValue, 1), {"--proba", "gives numbers"});
  expect_parts(refusal({.probabilities = true}, scores, 3), {"--proba", "hinge"});
  expect_parts(refusal({.top = 1}, TargetKind::kValue, 1), {"--top", "gives numbers"});
  expect_parts(refusal({.top = 1}, TargetKind::kBinary, 1), {"--top", "says yes or no"});
  expect_parts(refusal({.top = 4}, TargetKind::kClass, 3), {"--top 4", "has 3 classes"});
  expect_parts(refusal({.threshold = 0.3}, TargetKind::kClass, 3), {"--threshold", "has 3 classes"});
  expect_parts(refusal({.threshold = 0.3}, TargetKind::kValue, 1), {"--threshold", "gives numbers"});
  expect_parts(refusal({.threshold = 0.3}, {TargetKind::kBinary, Link::kIdentity}, 1),
               {"--threshold", "gives scores"});
  EXPECT_NO_THROW(check_view({.threshold = 0.3}, TargetKind::kClass, 2));
  EXPECT_NO_THROW(check_view({.top = 3}, scores, 3));
}

TEST(TargetLabels, AreReadFromTheSchemaNumbersFirst) {
  TableSchema schema;
  schema.columns = {{.name = "kind", .kind = ColumnKind::kCategorical, .label = true, .values = {"x", "y"}},
                    {.name = "price", .kind = ColumnKind::kNumeric, .label = true},
                    {.name = "age", .kind = ColumnKind::kNumeric}};
  const std::vector<TargetLabel> labels = read_target_labels(to_json(schema));
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(std::tuple(labels[0].name, labels[0].classes, labels[1].name),
            std::tuple("price", Texts{}, "kind"));
  EXPECT_EQ(labels[1].classes, (Texts{"x", "y"}));
  EXPECT_TRUE(read_target_labels("").empty());
  const std::string sparse =
      R"({"version": 1, "format": "libsvm", "features": 2, "first_index": 1, "classes": [-1, 1.5]})";
  EXPECT_EQ(read_target_labels(sparse).front().classes, (Texts{"-1", "1.5"}));
  EXPECT_EQ(class_names(TargetKind::kBinary, 1, read_target_labels(sparse)), (Texts{"-1", "1.5"}));
}

}  // namespace lockstep::test::prediction_table_test
