// What ranks have counted of the notations of a column; the notations: cases/notations.case.
#include "lockstep/data/table/values/notation.h"
#include "support/common.h"

namespace lockstep::notation_test {

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
  EXPECT_EQ(std::tuple(read.best()->notation, read.best()->texts, read.best()->example),
            std::tuple(whole.best()->notation, whole.best()->texts, whole.best()->example));
  EXPECT_EQ(std::tuple(read.others().by_count().size(), read.other_example(), read.best_date()->texts),
            std::tuple(3U, "2024-01-31", 1));
  EXPECT_EQ(std::tuple(read.best_date()->example, read.no_dates().distinct(), read.leading_zeros()),
            std::tuple("2024-01-31", whole.no_dates().distinct(), 1));
}

}  // namespace lockstep::notation_test
