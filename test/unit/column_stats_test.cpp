// Statistics of columns, chunk by chunk and merged.
#include "lockstep/data/table/values/column_stats.h"
#include "lockstep/base/random.h"
#include "support/seed.h"

namespace lockstep::column_stats_test {

using namespace test;

TEST(NumberStats, MergedChunksAreTheWhole) {
  RandomStream random({.seed = seed(), .purpose = Purpose::kSynthetic});
  double sum = 0, squares = 0;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1e6 + double{random.normal()});
  for (const double value : values) sum += value;
  const double mean = sum / 1000;
  for (const double value : values) squares += (value - mean) * (value - mean);
  NumberStats merged;
  for (std::size_t begin = 0; begin < values.size();) {
    NumberSums chunk;
    for (const std::size_t end = std::min(values.size(), begin + 1 + begin % 300); begin < end; ++begin)
      chunk.add(values[begin]);
    merged.merge(chunk.stats());
    merged.merge({});
  }
  EXPECT_EQ(merged.count, 1000);
  EXPECT_NEAR(merged.mean, mean, 1e-8);  // the sum of a thousand millions is no more exact
  EXPECT_NEAR(merged.deviation(), std::sqrt(squares / 1000), 1e-8);
  EXPECT_EQ(merged.min, *std::ranges::min_element(values));
  EXPECT_EQ(merged.max, *std::ranges::max_element(values));
  EXPECT_EQ(NumberStats{}.deviation(), 0);
}

TEST(ValueCounts, ForgetThemselvesBeyondTheLimitWhoeverCounts) {
  ValueCounts counts(3);
  for (const char* text : {"b", "a", "a", "c", "b", "a"}) counts.add(text);
  ASSERT_FALSE(counts.overflowed());
  const auto entries = counts.by_count();
  EXPECT_EQ(std::tuple(entries[0].text, entries[0].count, entries[1].text), std::tuple("a", 3, "b"));
  MessageWriter message;
  message(counts);
  MessageReader reader(message.bytes());
  ValueCounts other;
  reader(other);
  EXPECT_TRUE(reader.done());
  other.merge(counts);
  EXPECT_EQ(other.by_count()[2].count, 2);
  ValueCounts fourth(3);
  fourth.add("d");
  other.merge(fourth);
  EXPECT_TRUE(other.overflowed());
  EXPECT_EQ(other.distinct(), 0);
  fourth.merge(other);
  EXPECT_TRUE(fourth.overflowed());
}

}  // namespace lockstep::column_stats_test
