// Time limits as people and Slurm write them, and the end of a Slurm job as the environment gives it.
#include "lockstep/train/loop/run_control.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::test::time_limit_test {

double limit(std::string_view text) {
  return parse_time_limit("run.time_limit", text);
}

TEST(TimeLimit, ReadsNumbersWithTheirUnit) {
  EXPECT_EQ(limit("55 minutes"), 3300);
  EXPECT_EQ(limit("1 minute"), 60);
  EXPECT_EQ(limit("0.5 hours"), 1800);
  EXPECT_EQ(limit("3.2 seconds"), 3.2);
  EXPECT_EQ(limit("90minutes"), 5400);
}

// The forms that the manual of sbatch lists for --time.
TEST(TimeLimit, ReadsTheNotationsOfSlurm) {
  EXPECT_EQ(limit("90"), 90 * 60);
  EXPECT_EQ(limit("90:00"), 90 * 60);
  EXPECT_EQ(limit("5:30"), 5 * 60 + 30);
  EXPECT_EQ(limit("12:00:00"), 12 * 3600);
  EXPECT_EQ(limit("1:02:03"), 3600 + 2 * 60 + 3);
  EXPECT_EQ(limit("2-00"), 2 * 86400);
  EXPECT_EQ(limit("0-12"), 12 * 3600);
  EXPECT_EQ(limit("1-06:30"), 86400 + 6 * 3600 + 30 * 60);
  EXPECT_EQ(limit("1-12:00:00"), 86400 + 12 * 3600);
  EXPECT_EQ(limit("999999999-0"), 999999999.0 * 86400);
}

TEST(TimeLimit, ThereMayBeNone) {
  for (const char* text : {"UNLIMITED", "unlimited", "INFINITE", "Infinite", "0", "0:00", "0-00:00:00"})
    EXPECT_TRUE(std::isinf(limit(text))) << text;
}

TEST(TimeLimit, RefusesEverythingElseWithTheKeyAndTheText) {
  for (const char* text : {"",           " ",        "abc",     "0 minutes",  "-5 minutes",
                           "nan hours",  "5 days",   "1:2:3:4", ":",          "1:",
                           ":30",        "1-",       "-1",      "1--2",       "1-2:3:4:5",
                           "1-2-3",      "1:-5",     "1.5",     "1.5:00",     " 90",
                           "90 ",        "1e3",      "0x10",    "9999999999", "12:00:00 hours",
                           "UNLIMITED ", "UNLIMITE", "5 steps", "never"}) {
    const std::string problem = error_text<ConfigError>([&] { limit(text); });
    EXPECT_NE(problem.find(fmt::format("run.time_limit is '{}': expected ", text)), std::string::npos)
        << text << ": " << problem;
  }
}

// Of which nothing is left to train in.
TEST(TimeLimit, RefusesWhatIsKeptInReserveAsAWhole) {
  for (const char* text : {"2 seconds", "3 seconds", "0.01 minutes", "0:02", "0:03", "0-0:0:1"}) {
    expect_parts(error_text<ConfigError>([&] { limit(text); }),
                 {fmt::format("run.time_limit is '{}'", text), "3 s are kept", "expected a longer time"});
  }
  EXPECT_EQ(limit("0:04"), 4);
}

constexpr double kNow = 1.7e9;

TEST(EndOfJob, IsTheTimeUntilTheEndOfTheJob) {
  const TimeLeft left = job_time_left("1700003600", kNow);
  EXPECT_EQ(left.seconds, 3600);
  EXPECT_EQ(left.warning, "");
  EXPECT_EQ(job_time_left("1700000004", kNow).seconds, 4);
  // Slurm gives a job without a limit a year.
  EXPECT_EQ(job_time_left("1731536000", kNow).seconds, 365 * 86400);
}

TEST(EndOfJob, AValueThatCannotBeItsEndIsNoLimitButAWarning) {
  struct Case {
    const char* value;
    const char* reason;
  };
  for (const auto& [value, reason] : {Case{"", "no time in seconds since 1970"},
                                      {"abc", "no time in seconds since 1970"},
                                      {"UNLIMITED", "no time in seconds since 1970"},
                                      {"0", "no time in seconds since 1970"},
                                      {"-1", "no time in seconds since 1970"},
                                      {"nan", "no time in seconds since 1970"},
                                      {"17000036OO", "no time in seconds since 1970"},
                                      {"1700003600s", "no time in seconds since 1970"},
                                      {" 1700003600", "no time in seconds since 1970"},
                                      {"2025-01-01T00:00:00", "no time in seconds since 1970"},
                                      {"1699999900", "passed 1 m 40 s ago"},
                                      {"1700000000", "passed 0.0 s ago"},
                                      {"1700000003", "is in 3.0 s: there is no time to save"},
                                      {"1600000000", "passed 1157 days ago"},
                                      {"1700003600000", "more than ten years away"},
                                      {"1e300", "more than ten years away"},
                                      {"inf", "more than ten years away"}}) {
    const TimeLeft left = job_time_left(value, kNow);
    EXPECT_FALSE(left.seconds) << value;
    expect_parts(left.warning, {fmt::format("SLURM_JOB_END_TIME is '{}', ", value)});
    EXPECT_NE(left.warning.find(reason), std::string::npos) << value << ": " << left.warning;
    expect_parts(left.warning, {"run.time_limit"});
  }
}

}  // namespace lockstep::test::time_limit_test
