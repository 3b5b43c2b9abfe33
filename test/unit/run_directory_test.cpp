// What the files in a run directory say about the run.
#include "lockstep/train/run_directory.h"

#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "support/temporary_directory.h"

namespace lockstep::test {
namespace {

TEST(RunDirectory, IsCompleteWithSummaryAndModelAndIfNothingWasLost) {
  const TemporaryDirectory directory;
  const RunDirectory run{directory.path()};
  EXPECT_FALSE(run.complete());
  EXPECT_TRUE(run.lost().empty());
  write_file_atomically(run.summary(), R"({"steps": 9})");
  EXPECT_FALSE(run.complete()) << "there is no model";
  write_file_atomically(run.model(), "weights");
  EXPECT_TRUE(run.complete());
  write_file_atomically(run.summary(), R"({"steps": 9, "lost": ["log.txt", "the last checkpoint"]})");
  EXPECT_FALSE(run.complete());
  EXPECT_EQ(run.lost(), (std::vector<std::string>{"log.txt", "the last checkpoint"}));
}

// Whatever somebody wrote there.
TEST(RunDirectory, ASummaryThatSaysNothingOfLossesHasNone) {
  const TemporaryDirectory directory;
  const RunDirectory run{directory.path()};
  for (const char* text :
       {"", "{", "[]", "7", R"({"lost": 7})", R"({"lost": []})", R"({"lost": [7, null]})"}) {
    write_file_atomically(run.summary(), text);
    EXPECT_TRUE(run.lost().empty()) << text;
  }
}

}  // namespace
}  // namespace lockstep::test
