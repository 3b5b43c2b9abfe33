// The records with the largest losses: their order, and the words they are told in.
#include "lockstep/train/evaluation/evaluation_details.h"

#include "lockstep/base/catalog.h"
#include "support/common.h"

namespace lockstep::worst_records_test {

constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

std::unique_ptr<Loss> make_loss(const std::string& name) {
  return find_entry(loss_catalog(), "loss", name).make({});
}

// Records of one number each whose targets are 0, with ids from `first` on.
void add(WorstRecords& worst, const std::vector<Scalar>& outputs, Index first,
         const std::vector<Scalar>& weights = {}) {
  const std::vector<Scalar> zeros(outputs.size());
  std::vector<Index> ids;
  for (std::size_t i = 0; i < outputs.size(); ++i) ids.push_back(first + static_cast<Index>(i));
  const ConstMatrix y(outputs.data(), std::ssize(outputs), 1);
  const ConstMatrix targets(zeros.data(), std::ssize(outputs), 1);
  worst.add({.outputs = y, .targets = targets, .weights = {.values = weights}}, ids);
}

std::vector<Index> ids_of(const WorstRecords& worst) {
  std::vector<Index> ids;
  for (const WorstRecord& record : worst.records()) ids.push_back(record.id);
  return ids;
}

TEST(WorstRecords, ComeWithTheLargestLossFirst) {
  const auto loss = make_loss("mean_absolute_error");
  const PredictionWords words;
  WorstRecords worst(*loss, words);
  add(worst, {1, -3, 2, 0, 3}, 10);
  EXPECT_EQ(ids_of(worst), (std::vector<Index>{11, 14, 12, 10, 13})) << "equal ones by their ids";
  EXPECT_EQ(worst.records()[0].loss, 3);
  EXPECT_EQ(worst.records()[4].loss, 0);
  add(worst, {-3, 2.5F}, 0);
  EXPECT_EQ(ids_of(worst), (std::vector<Index>{0, 11, 14, 1, 12, 10, 13}));
}

// A loss that is no number is worse than any other, and hides none of the others.
TEST(WorstRecords, WithoutANumberComeFirstAndTheOthersBehindThem) {
  const auto loss = make_loss("mean_absolute_error");
  const PredictionWords words;
  WorstRecords worst(*loss, words);
  add(worst, {1, kNaN, 2, kNaN, 5}, 0);
  add(worst, {7, kNaN, 1}, 5);
  EXPECT_EQ(ids_of(worst), (std::vector<Index>{1, 3, 6, 5, 4, 2, 0, 7}));
  EXPECT_TRUE(std::isinf(worst.records()[2].loss));
  EXPECT_EQ(worst.records()[3].loss, 7);
}

TEST(WorstRecords, AreTwentyAtMost) {
  const auto loss = make_loss("mean_absolute_error");
  const PredictionWords words;
  for (const bool rising : {true, false}) {
    WorstRecords worst(*loss, words), others(*loss, words);
    for (Index i = 0; i < 50; ++i)
      add(i % 2 == 0 ? worst : others, {static_cast<Scalar>(rising ? i : 49 - i)}, i);
    for (const WorstRecord& record : others.records()) worst.add(record);
    ASSERT_EQ(worst.records().size(), kWorstRecords);
    for (std::size_t i = 0; i < kWorstRecords; ++i) {
      EXPECT_EQ(worst.records()[i].loss, 49 - static_cast<double>(i));
      EXPECT_EQ(worst.records()[i].id, rising ? 49 - static_cast<Index>(i) : static_cast<Index>(i));
    }
  }
}

// A record is as bad as its loss, however often it counts, and if it is not at all.
TEST(WorstRecords, AreNotWeighed) {
  const auto loss = make_loss("mean_absolute_error");
  const PredictionWords words;
  WorstRecords worst(*loss, words);
  add(worst, {1, 2, 9}, 0, {100, 1, 0});
  EXPECT_EQ(ids_of(worst), (std::vector<Index>{2, 1, 0}));
  EXPECT_EQ(worst.records()[2].loss, 1);
}

TEST(WorstRecords, HaveTheMeanLossOfTheTargetsThatAreThere) {
  const auto loss = make_loss("mean_absolute_error");
  const PredictionWords words;
  WorstRecords worst(*loss, words);
  const std::array<Scalar, 6> outputs{4, 4, 3, 3, 9, 9}, targets{0, kNaN, 0, 0, kNaN, kNaN};
  const std::array<Scalar, 3> present{1, 2, 0};
  const std::array<Index, 3> ids{0, 1, 2};
  worst.add({.outputs = ConstMatrix(outputs.data(), 3, 2),
             .targets = ConstMatrix(targets.data(), 3, 2),
             .weights = {.present = present, .targets = 2}},
            ids);
  EXPECT_EQ(ids_of(worst), (std::vector<Index>{0, 1})) << "a record without any target has no loss";
  EXPECT_EQ(worst.records()[0].loss, 4);
  EXPECT_EQ(worst.records()[1].loss, 3);
}

// The texts of one record.
WorstRecord told(const std::string& loss_name, const PredictionWords& words,
                 const std::vector<Scalar>& outputs, const std::vector<Scalar>& targets) {
  const auto loss = make_loss(loss_name);
  WorstRecords worst(*loss, words);
  const std::array<Index, 1> id{0};
  const ConstMatrix y(outputs.data(), 1, std::ssize(outputs)), t(targets.data(), 1, std::ssize(targets));
  worst.add({.outputs = y, .targets = t}, id);
  return worst.records().front();
}

TEST(WorstRecords, AreToldInTheWordsOfTheLabel) {
  const std::vector<Scalar> logits{std::log(0.125F), std::log(0.625F), std::log(0.25F)};
  const PredictionWords clothes{.classes = {"Coat", "Shirt", "Bag"}};
  const WorstRecord wrong = told("softmax_cross_entropy", clothes, logits, {2});
  EXPECT_EQ(wrong.target, "Bag");
  EXPECT_EQ(wrong.prediction, "Shirt (62.5 %); Bag has 25.0 %");
  EXPECT_NEAR(wrong.loss, std::log(4), 1e-5);
  EXPECT_EQ(told("softmax_cross_entropy", clothes, logits, {1}).prediction, "Shirt (62.5 %)");
  EXPECT_EQ(told("softmax_cross_entropy", {}, logits, {0}).prediction, "1 (62.5 %); 0 has 12.5 %");
  const PredictionWords answers{.classes = {"no", "yes"}};
  const WorstRecord yes = told("binary_cross_entropy", answers, {std::log(3.0F)}, {0});
  EXPECT_EQ(yes.target, "no");
  EXPECT_EQ(yes.prediction, "yes has 75.0 %");
  EXPECT_EQ(told("binary_cross_entropy", answers, {std::log(3.0F)}, {1}).target, "yes");
  const WorstRecord margin = told("binary_hinge", answers, {-0.5F}, {1});
  EXPECT_EQ(margin.target, "yes");
  EXPECT_EQ(margin.prediction, "-0.5");
  const PredictionWords scaled{
      .scales = {LabelScale{.shift = 10, .range = 2}, LabelScale{.shift = -1, .range = 0.5}}};
  const WorstRecord numbers = told("mean_squared_error", scaled, {1, 4}, {-1, 2});
  EXPECT_EQ(numbers.target, "8, 0");
  EXPECT_EQ(numbers.prediction, "12, 1");
  EXPECT_EQ(numbers.loss, 4) << "in the units that the model learns";
  const std::vector<Scalar> six{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(told("mean_squared_error", {}, six, six).target, "1, 2, 3, 4, 5, 6");
  const std::vector<Scalar> seven{1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(told("mean_squared_error", {}, seven, seven).target, "1, 2, 3, 4, 5, 6, ...");
}

}  // namespace lockstep::worst_records_test
