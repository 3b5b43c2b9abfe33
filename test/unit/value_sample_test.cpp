// Quantiles of a column: exact while all is kept, the same however the records are shared out.
#include "lockstep/data/table/values/column_stats.h"

#include "support/torch_references.h"

namespace lockstep::value_sample_test {

using Numbers = std::vector<double>;

TEST(ValueSample, KeepsAllNumbersThatItHasRoomFor) {
  ValueSample sample(4);
  for (const double value : {3.0, 1.0, 2.0}) sample.add(record_key(0, static_cast<Index>(value)), value);
  EXPECT_EQ(sample.sorted(), (Numbers{1, 2, 3}));
  ValueSample none;
  none.add(1, 1);
  EXPECT_TRUE(none.sorted().empty());
}

TEST(ValueSample, KeepsTheSameRecordsHoweverTheyAreSharedOut) {
  constexpr Index kRecords = 5000;
  constexpr Index kKept = 100;
  const auto value = [](Index record) { return static_cast<double>((record * 7919) % kRecords); };
  ValueSample whole(kKept);
  for (Index i = 0; i < kRecords; ++i) whole.add(record_key(0, i), value(i));
  EXPECT_EQ(std::ssize(whole.sorted()), kKept);
  for (const Index ranks : {2, 3}) {
    std::vector<ValueSample> parts(static_cast<std::size_t>(ranks), ValueSample(kKept));
    for (Index i = 0; i < kRecords; ++i) at(parts, i % ranks).add(record_key(0, i), value(i));
    ValueSample merged(kKept);
    for (ValueSample& part : parts) {
      MessageWriter message;
      message(part);
      MessageReader reader(message.bytes());
      ValueSample read;
      reader(read);
      merged.merge(read);
    }
    EXPECT_EQ(merged.sorted(), whole.sorted()) << ranks;
  }
}

TEST(ValueSample, ASampleIsSpreadOverAllRecords) {
  constexpr Index kRecords = 20'000;
  ValueSample sample(1000);
  for (Index i = 0; i < kRecords; ++i) sample.add(record_key(0, i), static_cast<double>(i));
  const Quartiles quartiles = quartiles_of(sample.sorted());
  constexpr double kTolerance = 0.07 * kRecords;
  EXPECT_NEAR(quartiles.lower, 0.25 * kRecords, kTolerance);
  EXPECT_NEAR(quartiles.median, 0.5 * kRecords, kTolerance);
  EXPECT_NEAR(quartiles.upper, 0.75 * kRecords, kTolerance);
}

TEST(ValueSample, ManyColumnsKeepFewerNumbersEach) {
  EXPECT_EQ(kept_for_quantiles(1), 65'536);
  EXPECT_EQ(kept_for_quantiles(64), 65'536);
  EXPECT_EQ(kept_for_quantiles(1024), 4096);
  EXPECT_EQ(kept_for_quantiles(1'000'000), 1024);
}

// As numpy.quantile gives them.
TEST(Quantiles, AreInterpolated) {
  EXPECT_EQ(quartiles_of({1, 2, 3, 4}), (Quartiles{.lower = 1.75, .median = 2.5, .upper = 3.25}));
  EXPECT_EQ(quartiles_of({5}), (Quartiles{.lower = 5, .median = 5, .upper = 5}));
}

TEST(Quantiles, EdgesAreNumbersThatOccur) {
  Numbers numbers(101);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  EXPECT_EQ(edges_of(numbers, 4), (Numbers{0, 25, 50, 75, 100}));
  EXPECT_EQ(edges_of({1, 1, 2, 2, 3}, 8), (Numbers{1, 2, 3})) << "fewer numbers than bins";
  EXPECT_EQ(edges_of({4, 4, 4}, 8), (Numbers{4}));
  Numbers skewed(90, 0.0);
  for (int i = 1; i <= 10; ++i) skewed.push_back(i);
  EXPECT_EQ(edges_of(skewed, 4), (Numbers{0, 10})) << "quantiles that are equal are one edge";
}

TEST(TreeThresholds, AreThoseOfScikitLearn) {
  for (const nlohmann::json& reference : test::torch_references("trees", "tree_references.json")) {
    std::vector<LabelledNumber> records;
    for (std::size_t i = 0; i < reference["numbers"].size(); ++i) {
      const bool weighs = !reference["weights"].empty();
      records.push_back({.number = reference["numbers"][i].get<double>(),
                         .label = reference["labels"][i].get<double>(),
                         .weight = weighs ? reference["weights"][i].get<double>() : 1});
    }
    const std::vector<double> found = tree_thresholds(records, {.max_leaves = reference["max_leaves"],
                                                                .leaf_records = reference["leaf_records"],
                                                                .classes = reference["classes"]});
    EXPECT_EQ(found, reference["thresholds"].get<std::vector<double>>());
  }
}

}  // namespace lockstep::value_sample_test
