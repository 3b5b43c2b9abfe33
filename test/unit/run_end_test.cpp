// The end of a run: each line of it in the log with all that it can say and without, and the summary.
#include <regex>

#include "lockstep/base/json.h"
#include "lockstep/report/live/run_output.h"
#include "support/common.h"

namespace lockstep::run_end_test {

// What is logged, without times and levels.
template <class Body>
std::string logged(const Body& body) {
  testing::internal::CaptureStdout();
  body();
  return std::regex_replace(testing::internal::GetCapturedStdout(), std::regex("[^\n]*\\] ?"), "");
}

EvalMetrics evaluation(Split split, double loss) {
  EvalMetrics metrics;
  metrics.split = split;
  metrics.loss = loss;
  metrics.samples = 10;
  return metrics;
}

const BestResult kBest{
    .measure = "recall", .value = 0.75, .progress = {.steps = 1000, .samples = 8000, .epochs = 2}};
const Calibration kCalibration{.temperature = 2,
                               .found = true,
                               .loss_before = 0.5,
                               .loss_after = 0.25,
                               .ece_before = 0.125,
                               .ece_after = 0.0625};

TrainingResult result() {
  TrainingResult result;
  result.progress = {.steps = 1200, .samples = 9600, .epochs = 2.5};
  result.seconds = 90;
  result.samples_per_second = 106.7;
  result.lr = 0.125;
  result.time = {.data = 0.0625, .compute = 0.5, .communication = 0.25, .waiting = 0.125};
  return result;
}

TEST(RunEnd, SaysWhichWeightsAreKept) {
  const auto kept = [](const TrainingResult& result, const std::string& positive = "") {
    return logged([&] { report_kept(result, positive); });
  };
  TrainingResult run = result();
  EXPECT_NE(kept(run).find("nobody has seen how the model does on other data"), std::string::npos);
  run.evaluations = {evaluation(Split::kValidation, 0.5)};
  EXPECT_EQ(kept(run), "");
  run.average = "mean";
  EXPECT_EQ(kept(run), "kept: the weights' mean of the last step\n");
  run.best = kBest;
  EXPECT_EQ(kept(run, "yes"),
            "kept: the weights' mean of step 1,000 (epoch 2.00), with the best recall of 'yes' of the "
            "validation set, 0.75\n");
  run.average.clear();
  run.last = evaluation(Split::kValidation, 0.25);
  run.last->accuracy = 0.625;
  run.early = "no better loss";
  EXPECT_EQ(kept(run),
            "stopped early after step 1,200: no better loss\n"
            "kept: the weights of step 1,000 (epoch 2.00), with the best recall of the validation set, 0.75; "
            "last: loss 0.25, accuracy 0.625\n");
  run.best->progress.steps = 1200;
  EXPECT_NE(kept(run).find("0.75; they are the last ones\n"), std::string::npos);
}

TEST(RunEnd, SaysWhatWasChosenOnTheValidationSet) {
  TrainingResult run = result();
  std::optional<ChosenThreshold> threshold;
  const auto lines = [&](const std::string& positive) {
    return logged([&] {
      report_calibration(run);
      report_threshold(threshold, positive);
    });
  };
  EXPECT_EQ(lines("a"), "");
  threshold = ChosenThreshold{.threshold = 0.25};
  EXPECT_EQ(lines(""), "threshold: the model says yes from a probability of 0.25 on\n");
  threshold->measure = "f1";
  run.calibration = kCalibration;
  const std::string calibrated = lines("a");
  EXPECT_TRUE(calibrated.ends_with(
      "error was 0.125 and is 0.0625\nthreshold: the model says yes ('a') from a "
      "probability of 0.25 on, where the f1 of 'a' of the validation set is largest, 0\n"));
  run.best = kBest;
  EXPECT_NE(lines("a").find("is 0.0625; these records chose the weights, too"), std::string::npos);
  run.calibration->found = false;
  EXPECT_TRUE(lines("a").starts_with("not calibrated: no temperature between 0.01 and 100"));
}

TEST(RunEnd, SaysHowTheRunWent) {
  TrainingResult run = result();
  const auto line = [&] { return logged([&] { report_result(run); }); };
  EXPECT_EQ(line(),
            "done: 1,200 steps, 9,600 samples in 1 m 30 s (107 samples/s); time: data 6.2 %, compute 50.0 %, "
            "communication 25.0 %, waiting 12.5 %\n");
  run.evaluations = {evaluation(Split::kValidation, 0.5), evaluation(Split::kTest, 0.75)};
  run.skipped_steps = 2;
  run.single_value_steps = 3;
  run.repairs = 1000;
  run.time.hidden = 0.75;
  run.time.idle = 0.0625;
  EXPECT_EQ(line(),
            "done: test loss 0.75; 1,200 steps (2 left out) (3 with a single value in batch norm) (1,000 "
            "with replicas made equal), 9,600 samples in 1 m 30 s (107 samples/s); "
            "time: data 6.2 %, compute 50.0 %, communication 25.0 % (hidden: 75 % of it), waiting 12.5 %, "
            "idle for other stages 6.2 %\n");
}

TEST(RunEnd, IsSummedUpInNumbers) {
  const auto summary = [](const RunEnd& end) {
    nlohmann::ordered_json json = summary_json(end);
    json.erase("time");
    for (const char* part : {"evaluation", "last_evaluation"}) {
      if (json.contains(part)) json[part] = json[part]["loss"];
    }
    return json.dump();
  };
  TrainingResult run = result();
  const std::string numbers =
      R"({"steps":1200,"samples_seen":9600,"epochs":2.5,"seconds":90.0,"samples_per_second":106.7,)"
      R"("lr":0.125,"config":"c","hosts":["n1"],)";
  RunEnd end{.result = run, .algorithm = "", .config = "c", .hosts = {"n1"}, .threshold = {}, .lost = {}};
  EXPECT_EQ(summary(end), numbers + R"("kept":{"weights":"last","step":1200}})");
  run.ranks.ranks.resize(1);  // which waits for nobody
  run.early = "no better";
  run.average = "mean";
  run.best = kBest;
  run.calibration = kCalibration;
  run.skipped_steps = 2;
  run.single_value_steps = 3;
  run.repairs = 4;
  run.evaluations = {evaluation(Split::kValidation, 0.5), evaluation(Split::kTest, 0.75)};
  run.last = evaluation(Split::kValidation, 0.25);
  end.algorithm = "ring";
  end.threshold = ChosenThreshold{.threshold = 0.25, .measure = "f1", .value = 0.875};
  end.lost = {"log.txt"};
  EXPECT_EQ(summary(end),
            numbers +
                R"("algorithm":"ring","early_stopping":"no better","kept":{"weights":"best",)"
                R"("step":1000,"epoch":2.0,"measure":"recall","value":0.75,"average":"mean"},)"
                R"("threshold":{"probability":0.25,"measure":"f1","value":0.875},)"
                R"("calibration":{"chose_weights":true,"temperature":2.0,"found":true,"log_loss_before":0.5,)"
                R"("log_loss":0.25,"ece_before":0.125,"ece":0.0625},)"
                R"("skipped_steps":2,"single_value_steps":3,"desync_repairs":4,"evaluation":0.75,)"
                R"("last_evaluation":0.25,"lost":["log.txt"]})");
  end.threshold->measure.clear();
  EXPECT_NE(summary(end).find(R"("threshold":{"probability":0.25},)"), std::string::npos);
}

}  // namespace lockstep::run_end_test
