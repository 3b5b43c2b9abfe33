// The line that is redrawn while training goes on.
#include "lockstep/report/live/run_output.h"
#include "support/common.h"

namespace lockstep::progress_line_test {

// What a line of a run of ten steps shows while `body` tells it what happens.
template <class Body>
std::string shown_by(const Body& body, const ShownProgress& shown, const std::string& measure = "loss",
                     ProgressStyle style = ProgressStyle::kLive) {
  testing::internal::CaptureStdout();
  {
    ProgressLine line(style, {.steps = 10, .samples = 100, .epochs = 1}, shown,
                      {measure, {}, measure == "accuracy"});
    body(line);
  }
  return testing::internal::GetCapturedStdout();
}

// A step after which the line is due.
void step_later(ProgressLine& line) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  line.on_step({.steps = 1, .samples = 10, .epochs = 0.1}, 2.5);
}

void evaluate(ProgressLine& line, Split split, double accuracy) {
  EvalMetrics evaluation;
  evaluation.split = split;
  evaluation.accuracy = accuracy;
  line.on_evaluation(evaluation);
}

TEST(ProgressLine, BeginsWithTheLossOfTheFirstStep) {
  const std::string shown = shown_by(step_later, {});
  EXPECT_NE(shown.find("loss 2.5"), std::string::npos) << shown;
}

TEST(ProgressLine, ShowsTheLastAndTheBestEvaluationOfTheValidationSet) {
  const auto told = [](ProgressLine& line) {
    evaluate(line, Split::kValidation, 0.75);
    evaluate(line, Split::kValidation, 0.5);
    evaluate(line, Split::kTest, 0.875);
    step_later(line);
  };
  const std::string shown = shown_by(told, {.validation = true}, "accuracy");
  EXPECT_NE(shown.find("validation accuracy 0.5 (best 0.75)"), std::string::npos) << shown;
}

TEST(ProgressLine, KnowsTheBestOfEarlierStartsAndNoneWhereItIsNotKept) {
  RunRecord earlier{.measure = "accuracy"};
  earlier.add_evaluation("validation", {.steps = 1}, {{"accuracy", 0.875}});
  const auto told = [&](ProgressLine& line) {
    line.go_on(earlier);
    evaluate(line, Split::kValidation, 0.5);
    step_later(line);
  };
  for (const bool keeps : {true, false}) {
    const std::string shown = shown_by(told, {.validation = true, .keeps_best = keeps}, "accuracy");
    EXPECT_EQ(shown.find("validation accuracy 0.5 (best 0.875)") != std::string::npos, keeps) << shown;
    EXPECT_NE(shown.find("validation accuracy 0.5"), std::string::npos) << shown;
  }
}

// Short epochs do not fill a terminal; the last evaluation is always told, and all with run.log_every = 1.
TEST(ProgressLine, ShowsOneEvaluationASecondOnATerminal) {
  const auto told = [](ProgressLine& line) {
    for (const Index step : {1, 2, 3, 10}) {
      TrainMetrics metrics;
      EvalMetrics evaluation;
      metrics.progress = evaluation.progress = {
          .steps = step, .samples = 10 * step, .epochs = 1.0 * static_cast<double>(step)};
      evaluation.split = Split::kValidation;
      line.on_train_metrics(metrics);
      line.on_evaluation(evaluation);
    }
  };
  for (const bool every : {false, true}) {
    const std::string shown = shown_by(told, {.validation = true, .every_line = every});
    for (const char* text : {"epoch 1.00  validation", "epoch 10.00  validation"})
      EXPECT_NE(shown.find(text), std::string::npos) << shown;
    EXPECT_EQ(shown.find("epoch 2.00  validation") != std::string::npos, every) << shown;
    EXPECT_EQ(shown.find("step 2/10") != std::string::npos, every) << shown;
  }
}

TEST(ProgressLine, OfNoneIsSilentWhateverElseIsWanted) {
  const auto told = [](ProgressLine& line) {
    step_later(line);
    line.on_train_metrics({});
  };
  EXPECT_EQ(shown_by(told, {.every_line = true}, "loss", ProgressStyle::kNone), "");
}

// By the time so far, a resumed run by that since its start; the first step alone says nothing. Evaluations
// are a part of that time, but not of the rate.
TEST(ProgressLine, EstimatesTheTimeLeftByThePace) {
  const auto told = [](ProgressLine& line) {
    line.on_step({.steps = 1, .samples = 10, .epochs = 0.1}, 2.5);
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    EvalMetrics evaluation;
    evaluation.seconds = 0.4;
    line.on_evaluation(evaluation);
    line.on_step({.steps = 4, .samples = 40, .epochs = 0.4}, 2.5);
  };
  const std::string shown = shown_by(told, {});
  const auto number_before = [&shown](const std::string& words) {
    const std::size_t end = shown.rfind(words);
    return end == std::string::npos ? 0 : std::stod(shown.substr(shown.rfind(' ', end - 1) + 1));
  };
  EXPECT_GE(number_before(" s left"), 2) << "60 samples more, after 30 in a second: " << shown;
  EXPECT_NEAR(number_before(" s left"), 2 * (30 / number_before(" samples/s") + 0.4), 0.1) << shown;
}

TEST(ProgressLine, TheBarIsFilledByTheShare) {
  EXPECT_EQ(bar(0, 4), "[>   ]");
  EXPECT_EQ(bar(0.5, 4), "[==> ]");
  EXPECT_EQ(bar(1, 4), "[====]");
  EXPECT_EQ(bar(2, 4), "[====]");
}

}  // namespace lockstep::progress_line_test
