// Who says what, and where; and a log file on a full disk: whole lines, one warning, none of the library.
#include "lockstep/base/log.h"

#include "lockstep/base/file.h"
#include "support/file_size_limit.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test::log_test {

TEST(Log, RankZeroTellsTheStoryAndTheOthersOnlyWarn) {
  for (const int rank : {0, 1, 7}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    start_log(rank);
    write_log(LogLevel::kDebug, "detail");
    log_info("event");
    log_warning("warning");
    log_error("failure");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), rank == 0 ? "event\n" : "");
    const std::string who = rank == 0 ? "" : "rank " + std::to_string(rank) + ": ";
    EXPECT_EQ(testing::internal::GetCapturedStderr(), who + "warning: warning\n" + who + "error: failure\n");
  }
}

TEST(Log, ColoursTheWordsThatLinesBeginWithWhereThatIsWantedAndNeverInTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "log.txt";
  for (const bool refused : {false, true}) {
    ::setenv("CLICOLOR_FORCE", "1", 1);
    ::setenv("NO_COLOR", refused ? "1" : "", 1);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    start_log(0);
    add_log_file(path);
    log_info("done: all");
    log_info("no head");
    log_warning("something");
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              refused ? "done: all\nno head\n" : "\033[1mdone:\033[0m all\nno head\n");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              refused ? "warning: something\n" : "\033[1;31mwarning:\033[0m something\n");
  }
  ::unsetenv("CLICOLOR_FORCE");
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(read_file(path).find('\033'), std::string::npos);
}

TEST(Log, LinesThatCannotBeWrittenAreOneWarningAndTheFileHasWholeLines) {
  const TemporaryDirectory directory;
  const std::string path = directory / "log.txt";
  start_log(0);
  add_log_file(path);
  log_info("first {}", std::string(5000, '.'));  // longer than what goes elsewhere while files are limited
  const std::string first = read_file(path);
  EXPECT_NE(first.find(" info first .."), std::string::npos) << first;
  EXPECT_FALSE(log_file_lost_lines());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const FileSizeLimit full(first.size() + 5);  // half of a line fits
    for (const char* line : {"second", "third", "fourth"}) log_info("{}", line);
  }
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "second\nthird\nfourth\n");
  EXPECT_EQ(errors,
            "warning: cannot write '" + path + "': File too large; the run goes on without these lines\n");
  EXPECT_TRUE(log_file_lost_lines());
  EXPECT_EQ(read_file(path), first);
  log_info("fifth");  // there is room again
  const std::string rest = read_file(path).substr(first.size());
  EXPECT_NE(rest.find(" info fifth\n"), std::string::npos) << rest;
  EXPECT_EQ(count_of(rest, "\n"), 1) << rest;
}

}  // namespace lockstep::test::log_test
