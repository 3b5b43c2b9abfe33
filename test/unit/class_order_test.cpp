// Which of two classes is yes: the one that is named, whose name means yes, that is rare, or the later one.
#include "lockstep/data/table/values/column_stats.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/errors.h"

namespace lockstep::class_order_test {
namespace {

using Names = std::vector<std::string>;

struct Pair {
  std::string a;
  std::string b;
  Index count_of_a = 0;  // of 100 records
};

std::string yes_of(const Pair& pair) {
  return ordered_classes(
             std::vector<ValueCounts::Entry>{{pair.a, pair.count_of_a}, {pair.b, 100 - pair.count_of_a}}, "",
             "label")
      .back();
}

TEST(ClassOrder, NamesThatMeanYesArePositiveHoweverFrequentTheyAre) {
  for (const Index count : {1, 50, 99}) {
    for (const auto& [no, yes] : std::vector<std::pair<std::string, std::string>>{{"no", "yes"},
                                                                                  {"False", "True"},
                                                                                  {"control", "case"},
                                                                                  {"0", "1"},
                                                                                  {"negative", "positive"},
                                                                                  {"nein", "ja"},
                                                                                  {"NON", "OUI"},
                                                                                  {"-1", "1"},
                                                                                  {"f", "t"},
                                                                                  {"N", "Y"},
                                                                                  {"0.0", "1.0"},
                                                                                  {"-1", "+1"},
                                                                                  {"-", "+"},
                                                                                  {"no", "sí"},
                                                                                  {"neg", "pos"},
                                                                                  {"zero", "Yes"},
                                                                                  {"no", "sim"}}) {
      EXPECT_EQ(yes_of({no, yes, count}), yes) << no << " " << count;
      EXPECT_EQ(yes_of({yes, no, count}), yes) << no << " " << count;
    }
  }
}

TEST(ClassOrder, TheRareClassIsPositiveElseTheLaterName) {
  for (const auto& [first, later] : std::vector<std::pair<std::string, std::string>>{{"ham", "spam"},
                                                                                     {"bad", "good"},
                                                                                     {"churned", "stayed"},
                                                                                     {"default", "paid"},
                                                                                     {"fail", "pass"},
                                                                                     {"sick", "well"},
                                                                                     {"fraud", "ok"},
                                                                                     {"1", "2"},
                                                                                     {"2", "4"},
                                                                                     {"9", "10"}}) {
    EXPECT_EQ(yes_of({first, later, 8}), first);
    EXPECT_EQ(yes_of({first, later, 39}), first);
    EXPECT_EQ(yes_of({first, later, 40}), later);
    EXPECT_EQ(yes_of({first, later, 50}), later);
    EXPECT_EQ(yes_of({first, later, 92}), later);
    EXPECT_EQ(yes_of({later, first, 92}), first) << "the order in which they are given does not count";
  }
  EXPECT_EQ(yes_of({"true", "yes", 8}), "true") << "both mean yes";
}

TEST(ClassOrder, APositiveClassIsOneOfTwo) {
  const std::vector<ValueCounts::Entry> two{{"ok", 90}, {"fraud", 10}};
  EXPECT_EQ(ordered_classes(two, "ok", "label"), (Names{"fraud", "ok"}));
  EXPECT_EQ(ordered_classes(two, "fraud", "label"), (Names{"ok", "fraud"}));
  const std::vector<ValueCounts::Entry> three{{"c", 1}, {"a", 90}, {"b", 9}};
  EXPECT_EQ(ordered_classes(three, "", "label"), (Names{"a", "b", "c"}));
  const auto message = [](const std::vector<ValueCounts::Entry>& classes, const std::string& positive) {
    try {
      ordered_classes(classes, positive, "column 'y'");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      message(two, "frad"),
      "data.positive = 'frad': column 'y' has the 2 classes fraud, ok, expected two, of which this is one");
  EXPECT_EQ(message(three, "a"),
            "data.positive = 'a': column 'y' has the 3 classes a, b, c, expected two, of which this is one");
}

}  // namespace
}  // namespace lockstep::class_order_test
