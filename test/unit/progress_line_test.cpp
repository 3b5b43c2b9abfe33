// The line that is redrawn while training goes on.
#include "lockstep/report/live/progress_line.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::progress_line_test {
namespace {

TEST(ProgressLine, BeginsWithTheLossOfTheFirstStep) {
  testing::internal::CaptureStdout();
  {
    ProgressLine line(ProgressStyle::kLive, {.steps = 10, .samples = 100, .epochs = 1}, {},
                      {"loss", {}, false});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    line.on_step({.steps = 1, .samples = 10, .epochs = 0.1}, 2.5);
  }
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("loss 2.5"), std::string::npos) << shown;
}

TEST(ProgressLine, ShowsTheLastAndTheBestEvaluationOfTheValidationSet) {
  testing::internal::CaptureStdout();
  {
    ProgressLine line(ProgressStyle::kLive, {.steps = 10, .samples = 100, .epochs = 1}, {.validation = true},
                      {"accuracy", {}, true});
    for (const auto& [split, accuracy] :
         {std::pair{Split::kValidation, 0.75}, {Split::kValidation, 0.5}, {Split::kTest, 0.875}}) {
      EvalMetrics evaluation;
      evaluation.split = split;
      evaluation.accuracy = accuracy;
      line.on_evaluation(evaluation);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    line.on_step({.steps = 1, .samples = 10, .epochs = 0.1}, 2.5);
  }
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("validation accuracy 0.5 (best 0.75)"), std::string::npos) << shown;
}

TEST(ProgressLine, KnowsTheBestOfEarlierStartsAndNoneWhereItIsNotKept) {
  RunRecord earlier{.measure = "accuracy"};
  earlier.add_evaluation("validation", {.steps = 1}, {{"accuracy", 0.875}});
  for (const bool keeps : {true, false}) {
    testing::internal::CaptureStdout();
    {
      ProgressLine line(ProgressStyle::kLive, {.steps = 10, .samples = 100, .epochs = 1},
                        {.validation = true, .keeps_best = keeps}, {"accuracy", {}, true});
      line.go_on(earlier);
      EvalMetrics evaluation;
      evaluation.split = Split::kValidation;
      evaluation.accuracy = 0.5;
      line.on_evaluation(evaluation);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      line.on_step({.steps = 1, .samples = 10, .epochs = 0.1}, 2.5);
    }
    const std::string shown = testing::internal::GetCapturedStdout();
    EXPECT_EQ(shown.find("validation accuracy 0.5 (best 0.875)") != std::string::npos, keeps) << shown;
    EXPECT_NE(shown.find("validation accuracy 0.5"), std::string::npos) << shown;
  }
}

// Short epochs do not fill a terminal; the last evaluation always stands there, and all with run.log_every
// = 1.
TEST(ProgressLine, ShowsOneEvaluationASecondOnATerminal) {
  for (const bool every : {false, true}) {
    testing::internal::CaptureStdout();
    {
      ProgressLine line(ProgressStyle::kLive, {.steps = 10, .samples = 100, .epochs = 10},
                        {.validation = true, .every_line = every}, {"loss", {}, false});
      for (const Index step : {1, 2, 3, 10}) {
        TrainMetrics metrics;
        EvalMetrics evaluation;
        metrics.progress =
            evaluation.progress = {.steps = step, .samples = 10 * step, .epochs = static_cast<double>(step)};
        evaluation.split = Split::kValidation;
        line.on_train_metrics(metrics);
        line.on_evaluation(evaluation);
      }
    }
    const std::string shown = testing::internal::GetCapturedStdout();
    for (const char* text : {"epoch 1.00  validation", "epoch 10.00  validation"})
      EXPECT_NE(shown.find(text), std::string::npos) << shown;
    EXPECT_EQ(shown.find("epoch 2.00  validation") != std::string::npos, every) << shown;
    EXPECT_EQ(shown.find("step 2/10") != std::string::npos, every) << shown;
  }
}

// By the time so far, a resumed run by that since its start; the first step alone says nothing.
TEST(ProgressLine, EstimatesTheTimeLeftByThePace) {
  testing::internal::CaptureStdout();
  {
    ProgressLine line(ProgressStyle::kLive, {.steps = 11, .samples = 1100, .epochs = 1}, {},
                      {"loss", {}, false});
    line.on_step({.steps = 1, .samples = 100, .epochs = 0.1}, 2.5);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    line.on_step({.steps = 6, .samples = 600, .epochs = 0.5}, 2.5);
  }
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("  0.6 s left"), std::string::npos) << shown;
  EXPECT_NE(shown.find(" samples/s"), std::string::npos) << shown;
}

TEST(ProgressLine, TheBarIsFilledByTheShare) {
  EXPECT_EQ(bar(0, 4), "[>   ]");
  EXPECT_EQ(bar(0.5, 4), "[==> ]");
  EXPECT_EQ(bar(1, 4), "[====]");
  EXPECT_EQ(bar(2, 4), "[====]");
}

}  // namespace
}  // namespace lockstep::progress_line_test
