// Sweeps and cross-validation: each trial is the run that its flags make by themselves, whatever befell it.
#include <csignal>

#include "support/running_job.h"
#include "support/trainer_runs.h"

namespace lockstep::test::sweep_test {
namespace {

using Json = nlohmann::json;

class Sweep : public testing::Test {
 protected:
  std::string arguments(const std::string& run, const std::string& flags) const {
    return saving_arguments(experiment_, run, flags);
  }
  static Json results_of(const std::string& run) { return Json::parse(read_file(run + "/sweep.json")); }
  static Json trial(const std::string& run, Index number) {
    const Json results = results_of(run);
    for (const Json& row : results["trials"]) {
      if (row["trial"] == number) return row;
    }
    return nullptr;
  }
  // A run by itself.
  std::string single(const std::string& flags) const {
    std::string run = experiment_.fresh_run();
    succeed(arguments(run, flags));
    return run;
  }
  // The models of single runs with the settings of the grid below, by number of the trial.
  std::vector<std::string> single_models() const {
    std::vector<std::string> models;
    for (const char* lr : {"0.01", "0.05"}) {
      for (const char* momentum : {"0", "0.9"}) {
        for (const char* seed : {"1", "2"}) {
          models.push_back(model_of(
              single(fmt::format("--train.lr {} --train.momentum {} --run.seed {}", lr, momentum, seed))));
        }
      }
    }
    return models;
  }
  static constexpr const char* kGrid =
      "--grid train.lr=0.01,0.05 --grid train.momentum=0,0.9 --grid run.seed=1,2 --ranks-per-trial 2";

  SmallExperiment experiment_;
};

// The steps of the evaluations in metrics.jsonl, in order.
std::vector<Index> evaluated_steps(const std::string& run) {
  std::vector<Index> steps;
  for (const Json& line : metric_lines(run + "/metrics.jsonl", "evaluation")) steps.push_back(line["step"]);
  return steps;
}

std::string name_of(Index trial) {
  return fmt::format("/trial-{:04}", trial);
}

TEST_F(Sweep, OfEightTrialsIsEightSingleRunsAlsoAfterItWasKilled) {
  const std::vector<std::string> models = single_models();
  const std::string run = experiment_.fresh_run();
  const std::string command = "sweep " + arguments(run, kGrid);
  {
    RunningJob job(4, command + " --debug.delay_rank 0 --debug.delay_ms 30");
    ASSERT_TRUE(job.says("trial-0003 begins", 60)) << job.errors();
    for (const pid_t pid : job.rank_pids()) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    job.wait(30);
  }
  EXPECT_FALSE(std::filesystem::exists(run + "/sweep.json"));
  expect_parts(succeed(4, command).output,
               {"8 trials, 2 at a time on 2 ranks each", "the sweep goes on", "best: trial-"});
  for (Index i = 0; i < 8; ++i)
    EXPECT_TRUE(model_of(run + name_of(i + 1)) == at(models, i)) << "trial " << i + 1;
  EXPECT_EQ(results_of(run)["trials"].size(), 8U);
  const ProcessResult again = succeed(2, command);
  EXPECT_EQ(again.output.find("begins on"), std::string::npos) << "finished trials are kept";
}

TEST_F(Sweep, ATrialThatFailsIsARowAndNotTheEnd) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult result =
      succeed(2, "sweep " + arguments(run,
                                      "--debug.nan_replica 0 --grid debug.nan_step=1000,3 --grid "
                                      "model.layers='dense(4)|dense(5)|dense(4) oops'"));
  EXPECT_EQ(trial(run, 1)["state"], "done");
  EXPECT_EQ(trial(run, 3)["state"], "failed");
  EXPECT_EQ(trial(run, 3)["exit_code"], kExitConfig);
  expect_parts(trial(run, 3)["reason"].get<std::string>(), {"oops"});
  EXPECT_EQ(trial(run, 4)["exit_code"], kExitTraining);
  expect_parts(result.output, {"trial-0003 failed with exit code 2", "best: trial-000"});
  expect_parts(read_file(run + "/trial-0004/log.txt"), {" error ", "not finite"});
}

TEST_F(Sweep, ThatIsStoppedSavesItsTrialsAndGoesOn) {
  const std::string run = experiment_.fresh_run();
  const std::string command = "sweep " + arguments(run, "--grid run.seed=1,2,3 --train.lr 0.02");
  {
    RunningJob job(2, command + " --debug.delay_rank 0 --debug.delay_ms 100");
    ASSERT_TRUE(job.says("begins on rank 1", 60)) << job.errors();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (const pid_t pid : job.rank_pids()) ::kill(pid, SIGTERM);
    EXPECT_EQ(job.wait(60), kExitStopped) << job.errors();
    EXPECT_TRUE(job.says("the same command goes on from there", 1)) << job.output();
  }
  succeed(2, command);
  EXPECT_TRUE(model_of(run + name_of(1)) == model_of(single("--run.seed 1 --train.lr 0.02")));
}

TEST_F(Sweep, HalvingDropsTheWorstAndChangesNoBitOfTheBest) {
  const std::string run = experiment_.fresh_run();
  const std::string length = " --train.epochs 4 --eval.every '0.5 epochs' --train.schedule cosine";
  const std::string command =
      "sweep " + arguments(run, "--grid train.lr=0.05,1e-5,1e-6,1e-7 --halving 2" + length);
  succeed(2, command);
  EXPECT_EQ(trial(run, 1)["state"], "done");
  EXPECT_EQ(trial(run, 1)["rungs"].size(), 3U);
  Index dropped = 0;
  const Json results = results_of(run);
  for (const Json& row : results["trials"]) dropped += row["state"] == "dropped" ? 1 : 0;
  EXPECT_EQ(dropped, 3);
  const std::string alone = single("--train.lr 0.05" + length);
  EXPECT_TRUE(model_of(run + name_of(1)) == model_of(alone));
  EXPECT_EQ(evaluated_steps(run + name_of(1)), evaluated_steps(alone)) << "each rung is evaluated once";
}

TEST_F(Sweep, PartsOfItMeetInOneTable) {
  const std::string run = experiment_.fresh_run();
  const std::string command = "sweep " + arguments(run, "--grid run.seed=1,2,3");
  succeed(command + " --part 1/2");
  EXPECT_EQ(trial(run, 2)["state"], "waiting");
  succeed(command + " --part 2/2");
  for (Index number = 1; number <= 3; ++number) EXPECT_EQ(trial(run, number)["state"], "done");
}

TEST_F(Sweep, IsRefusedBeforeAnythingRuns) {
  const std::string run = experiment_.fresh_run();
  const auto refusal = [&](int ranks, const std::string& flags) {
    return ended_with(run_trainer(ranks, "sweep " + arguments(run, flags)), kExitConfig).errors;
  };
  expect_parts(refusal(1, "--grid train.lrr=1"), {"unknown key 'train.lrr'", "train.lr"});
  expect_parts(refusal(1, ""), {"--grid or --random is missing"});
  expect_parts(refusal(1, "--random 'train.lr=log(1e-3,1)'"), {"--trials is missing"});
  expect_parts(refusal(2, "--grid train.lr=1 --ranks-per-trial 3"),
               {"--ranks-per-trial 3 does not divide", "2 ranks"});
  expect_parts(refusal(1, "--grid train.lr=1,2 --halving 2 --part 1/2"), {"--halving", "--part"});
  expect_parts(refusal(1, "--grid train.lr=1 --run.resume restart"), {"go on by themselves", "run.resume"});
  expect_parts(refusal(1,
                       "--train.milestones '1 epoch' --train.schedule milestones --grid "
                       "train.milestones='[1 epoch]|[2 epochs]'"),
               {"--train.milestones is given", "leave the flag out"});
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST_F(Sweep, GrowsByFurtherValues) {
  const std::string run = experiment_.fresh_run();
  succeed("sweep " + arguments(run, "--grid run.seed=2,1"));
  const std::string before = read_file(run + "/rows/trial-0001.json");
  const ProcessResult more = succeed("sweep " + arguments(run, "--grid run.seed=1,2,3"));
  expect_no_parts(more.output, {"trial-0001 begins"});
  expect_parts(more.output, {"3 trials", "trial-0003 begins on rank 0: run.seed 3"});
  EXPECT_EQ(read_file(run + "/rows/trial-0001.json"), before);
  EXPECT_EQ(trial(run, 1)["settings"]["run.seed"], "2");
  expect_failed(run_trainer("sweep " + arguments(run, "--grid run.seed=1,2")), kExitConfig,
                {"--grid run.seed=1,2,3"});
}

TEST_F(Sweep, TriesAgainWhatFailedByAFile) {
  const std::string run = experiment_.fresh_run();
  const std::string file = run + ".init.safetensors";
  const std::string good = experiment_.fresh_run();
  succeed(arguments(good, ""));
  const std::string failing =
      "sweep " + arguments(run, fmt::format("--grid train.init={}/model.safetensors,{}", good, file));
  succeed(failing);
  EXPECT_EQ(trial(run, 2)["exit_code"], kExitData) << trial(run, 2);
  std::filesystem::copy_file(good + "/model.safetensors", file);
  const ProcessResult again = run_trainer(failing);
  expect_parts(again.output, {"trial-0002 failed with exit code 3, and is tried again"});
  EXPECT_EQ(trial(run, 2)["state"], "done") << trial(run, 2);
}

TEST_F(Sweep, AnotherOneInItsDirectoryIsRefused) {
  const std::string run = experiment_.fresh_run();
  succeed("sweep " + arguments(run, "--grid run.seed=1,2"));
  expect_failed(run_trainer("sweep " + arguments(run, "--grid run.seed=1,3")), kExitConfig,
                {"is another one", "--grid run.seed=1,2", "--grid run.seed=1,3"});
  expect_parts(run_trainer("sweep " + arguments(run + name_of(1), "--grid run.seed=1,2")).errors,
               {"is the directory of a run"});
}

// A table, also divided by hand, so that a fold can be compared with a run on files.
class CrossValidation : public TrainerRuns {
 protected:
  CrossValidation() {
    std::string all = "a,b,y,fold\n";
    for (Index i = 0; i < 120; ++i) {
      const std::string record =
          fmt::format("{},{},{}", i * 37 % 101, i * 53 % 89, (i * 37 % 101) > 50 ? 1 : 0);
      all += fmt::format("{},{}\n", record, i * 7 % 3);
      (i * 7 % 3 == 1 ? held_ : rest_) += record + "\n";
    }
    write("all.csv", all);
    write("rest.csv", "a,b,y\n" + rest_);
    write("held.csv", "a,b,y\n" + held_);
  }
  std::string arguments(const std::string& train, const std::string& run, const std::string& flags) const {
    return fmt::format(
        "--data.train {} --data.label y --model.layers 'dense(8) relu dense(2)' --train.epochs 3 "
        "--train.lr 0.1 --train.global_batch 16 --train.replicas 4 --distribute.reduction ordered "
        "--run.dir {} {}",
        directory_ / train, directory_ / run, flags);
  }
  std::string config() const { return "--config " + path("run.toml") + " "; }
  ProcessResult cv(int ranks, const std::string& flags) const {
    return run_trainer(ranks, "cv " + config() + arguments("all.csv", "cv", flags));
  }
  // The lines of the predictions of all folds; and those of a file by the second of them.
  std::vector<std::string> joined() const { return lines_of(read_file(path("cv/predictions.csv"))); }
  std::vector<std::string> of_fold(const std::string& input) const {
    return lines_of(predict(1, "cv/fold-0002", path(input), "of_fold.csv"));
  }
  void expect_changed_data(int ranks, const std::string& flags, const std::string& name) const {
    const ProcessResult result = ended_with(cv(ranks, flags), kExitConfig);
    expect_parts(result.errors, {"the training data have changed since fold-0001", name});
    expect_no_parts(result.output, {"begins"});
  }

  std::string held_;
  std::string rest_;
};

TEST_F(CrossValidation, EachFoldIsTheRunWithThatValidationSet) {
  expect_parts(succeeded(cv(2, "--folds 3 --fold-column fold --refit")).output,
               {"mean", "standard deviation", "refit: on all records"});
  succeed(config() +
          arguments("rest.csv", "single", fmt::format("--data.validation {}", directory_ / "held.csv")));
  EXPECT_TRUE(model_of(directory_ / "cv/fold-0002") == model_of(directory_ / "single"));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "cv/refit/model.safetensors"));
}

TEST_F(CrossValidation, RecordsOfATestPartAreInNoFold) {
  succeeded(cv(2, "--folds 3 --data.test_part 'share(0.2)' --refit"));
  const std::vector<std::string> lines = joined();
  ASSERT_EQ(lines.size(), 121U);
  const auto without = std::ranges::count_if(
      lines, [](const std::string& line) { return line.find(",,") != std::string::npos; });
  const Json test = evaluate(1, "--model " + (directory_ / "cv/fold-0001"))["test"];
  EXPECT_EQ(without, test["samples"].get<Index>());
  EXPECT_GT(without, 10);
}

// Also where all is done, and where a trial that was killed is the only one.
TEST_F(CrossValidation, OfDataThatHaveChangedIsRefused) {
  const std::string folds = "--folds 3";
  succeeded(cv(1, folds));
  const std::string before = read_file(directory_ / "all.csv");
  std::string after = before;
  after[after.size() / 2] = after[after.size() / 2] == '1' ? '2' : '1';
  write("all.csv", after);
  expect_changed_data(1, folds, "all.csv");
  std::filesystem::remove_all(directory_ / "cv/rows");
  expect_changed_data(2, folds, "all.csv");
  write("all.csv", before);
  succeeded(cv(1, folds));
}

// As one that came while a sweep goes on: the trial that meets it is no failed one.
TEST_F(CrossValidation, EndsAtAFoldThatFindsOtherData) {
  succeeded(cv(1, "--folds 2"));
  const std::string data = directory_ / "cv/data.json";
  Json noted = Json::parse(read_file(data));
  const std::string hash = noted[0]["hash"];
  noted[0]["hash"] = "all bytes 0123456789abcdef";
  noted[0].erase("files");
  write_file_atomically(data, noted.dump());
  std::filesystem::remove(directory_ / "cv/rows/fold-0002.json");
  const ProcessResult result = ended_with(cv(2, "--folds 2"), kExitConfig);
  expect_parts(result.errors, {"the training data have changed since fold-0001", "0123456789abcdef"});
  expect_parts(result.output, {"fold-0002"});
  noted[0]["hash"] = hash;
  write_file_atomically(data, noted.dump());
  succeeded(cv(1, "--folds 2"));
}

TEST_F(CrossValidation, WhoseFoldsAllFailHasNoMean) {
  const ProcessResult result =
      ended_with(cv(1, "--folds 2 --debug.nan_replica 0 --debug.nan_step 1"), kExitTraining);
  expect_parts(result.output, {"fold-0001 failed"});
  expect_no_parts(result.output, {"standard deviation"});
}

TEST_F(CrossValidation, RefitByAScheduleThatFollowsTheValidationSetIsRefusedAtOnce) {
  expect_failed(cv(1, "--folds 2 --refit --train.schedule plateau"), kExitConfig,
                {"--refit", "plateau", "leave --refit out"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "cv/fold-0001"));
}

TEST_F(CrossValidation, IsNotByChanceWhereTheConfigHasFoldsOfAnotherKind) {
  expect_failed(cv(1, "--folds 3 --data.validation 'fold(1/3, by = class)'"), kExitConfig,
                {"fold(1/3, by = class)", "--stratified"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "cv"));
}

TEST_F(CrossValidation, PredictsRecordsThatLackATarget) {
  std::string all = "a,u,v\n";
  for (Index i = 0; i < 60; ++i) all += fmt::format("{},{},{}\n", i, i % 3 == 0 ? "" : "1", i % 5);
  write("gaps.csv", all);
  succeed(2,
          "cv " + words("cv", fmt::format("--data.train {} --data.label u,v --train.loss mean_squared_error "
                                          "--model.layers 'dense(2)' --train.epochs 1 --train.global_batch 8 "
                                          "--folds 3 --data.columns 'v: standard'",
                                          path("gaps.csv"))));
  // In the units of the labels, as predict has them.
  const std::vector<std::string> lines = joined();
  const std::vector<std::string> expected = of_fold("gaps.csv");
  ASSERT_EQ(lines.size(), 61U);
  Index compared = 0;
  for (Index record = 0; record < 60; ++record) {
    const std::string start = fmt::format("{},2,", record);
    const std::string& line = at(lines, record + 1);
    if (!line.starts_with(start)) continue;
    ++compared;
    const std::string& of_model = at(expected, record + 1);
    EXPECT_EQ(line.substr(start.size()), of_model.substr(of_model.find(',') + 1));
  }
  EXPECT_EQ(compared, 20);
}

// With the temperature and the threshold of that model, too.
TEST_F(CrossValidation, PredictsEachRecordByTheModelThatHasNotSeenIt) {
  succeeded(cv(1, "--folds 3 --fold-column fold --train.calibrate temperature --eval.threshold 0.8"));
  EXPECT_GT(std::abs(summary_of("cv/fold-0002")["calibration"]["temperature"].get<double>() - 1), 0.01);
  const std::vector<std::string> lines = joined();
  const std::vector<std::string> expected = of_fold("held.csv");
  ASSERT_EQ(lines.size(), 121U);
  EXPECT_EQ(lines[0], "row,fold,prediction,p_0,p_1");
  Index compared = 0;
  for (Index record = 0; record < 120; ++record) {
    const Index fold = record * 7 % 3 + 1;
    const std::string start = fmt::format("{},{},", record, fold);
    const std::string& line = at(lines, record + 1);
    EXPECT_TRUE(line.starts_with(start)) << line;
    if (fold != 2) continue;
    const std::string& of_model = at(expected, ++compared);
    EXPECT_EQ(line.substr(start.size()), of_model.substr(of_model.find(',') + 1));
  }
  EXPECT_EQ(std::ssize(expected), compared + 1);
}

}  // namespace
}  // namespace lockstep::test::sweep_test
