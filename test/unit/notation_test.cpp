// What ranks have counted of the notations of a column; the notations: cases/notations.case.
#include "lockstep/data/table/values/notation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::notation_test {
namespace {

TEST(Notation, CountsMergeAsIfSeenAtOnce) {
  const std::vector<const char*> texts{"12,5", "x", "$3", "2024-01-31", "1.234,5", "y"};
  NotationCounts whole;
  NotationCounts parts[2];
  for (std::size_t i = 0; i < texts.size(); ++i) {
    whole.add_text(texts[i]);
    parts[i % 2].add_text(texts[i]);
  }
  whole.add_number("007", 7);
  parts[1].add_number("007", 7);
  parts[1].merge(parts[0]);
  MessageWriter message;
  message(parts[1]);
  MessageReader reader(message.bytes());
  NotationCounts read;
  reader(read);
  EXPECT_EQ(read.best(',')->notation, whole.best(',')->notation);
  EXPECT_EQ(read.best(',')->texts, whole.best(',')->texts);
  EXPECT_EQ(read.best(',')->example, whole.best(',')->example);
  EXPECT_EQ(read.others().by_count().size(), 3U);
  EXPECT_EQ(read.other_example(), "2024-01-31");
  EXPECT_EQ(read.best_date()->texts, 1);
  EXPECT_EQ(read.best_date()->example, "2024-01-31");
  EXPECT_EQ(read.no_dates().distinct(), whole.no_dates().distinct());
  EXPECT_EQ(read.leading_zeros(), 1);
}

}  // namespace
}  // namespace lockstep::notation_test
