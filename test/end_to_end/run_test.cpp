// What a run leaves behind and says, as a user sees it; run.json in each way to end, and what viewers make of
// it.
#include <signal.h>

#include "support/running_job.h"
#include "support/trainer_runs.h"

namespace lockstep::test::run_test {
namespace {

using Json = nlohmann::json;

class Run : public SmallRuns {};

TEST_F(Run, LeavesItsRecordsBehind) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult result = succeed(2, words(run, "--run.log_every 5 --run.progress plain"));
  EXPECT_TRUE(result.output.starts_with("2 ranks on 1 host, 8 replicas, 1 thread, precision fp32; "))
      << result.output;
  expect_parts(result.output, {"rank 0 loaded 103 rows", "rank 1 loaded 100 rows",
                               "plan: ", "done: test loss", "samples/s", "waiting", "written: "});
  EXPECT_EQ(result.output.find('\r'), std::string::npos) << "a progress line was drawn into a file";

  // 203 rows in batches of 24: nine steps an epoch, the last with 11 samples.
  const std::vector<Json> metrics = metric_lines(run + "/metrics.jsonl");
  int trained = 0;
  for (const Json& line : metric_lines(run + "/metrics.jsonl", "train")) {
    ++trained;
    EXPECT_GT(line.at("loss").get<double>(), 0);
    const Json& time = line.at("time");
    EXPECT_NEAR(time.at("data").get<double>() + time.at("compute").get<double>() +
                    time.at("communication").get<double>() + time.at("waiting").get<double>(),
                1.0, 1e-9);
  }
  EXPECT_EQ(trained, 4);  // steps 5, 10, 15 and the last, 18
  const Json& last = metrics.back();
  EXPECT_EQ(last.at("kind"), "evaluation");
  EXPECT_EQ(last.at("step"), 18);
  EXPECT_EQ(last.at("samples_seen"), 406);
  EXPECT_EQ(last.at("samples"), 57);
  Index counted = 0;
  for (const Json& row : last.at("confusion")) {
    for (const Json& cell : row) counted += cell.get<Index>();
  }
  EXPECT_EQ(counted, 57);

  const Json summary = Json::parse(read_file(run + "/summary.json"));
  EXPECT_EQ(summary.at("steps"), 18);
  EXPECT_EQ(summary.at("evaluation").at("loss"), last.at("loss"));
  expect_parts(read_file(run + "/plan.txt"), {"steps per epoch"});
  expect_parts(read_file(run + "/log.txt"), {"done: test loss"});
}

// 203 rows in batches of 101: the last step of each of two epochs has one sample.
TEST_F(Run, WarnsOnceOfASingleValueInBatchNorm) {
  const std::string run = experiment_.fresh_run();
  const std::string flags = fmt::format(
      "--config {} --train.replicas 2 --train.global_batch 101 "
      "--model.layers 'dense(4) batch_norm relu dense(4)'",
      experiment_.config());
  const ProcessResult result = succeed(2, flags + " --run.dir " + run);
  EXPECT_EQ(count_of(result.errors, "step 3 gives 1 of 2 replicas a single value"), 1) << result.errors;
  EXPECT_EQ(count_of(result.errors, "single value"), 1) << result.errors;
  expect_parts(result.errors, {"train.tail = \"drop\""});
  expect_parts(result.output, {"6 steps (2 with a single value in batch norm)"});
  expect_parts(read_file(run + "/plan.txt"),
               {"last step of each epoch gives 1 of 2 replicas a single value"});
  EXPECT_EQ(Json::parse(read_file(run + "/summary.json")).at("single_value_steps"), 2);
  const ProcessResult dropped =
      run_trainer(flags + " --train.tail drop --run.dir " + experiment_.fresh_run());
  expect_no_parts(dropped.errors + dropped.output, {"single value"});
}

TEST_F(Run, SaysWhereItsRanksAre) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult result = succeeded(
      run_command("export SLURM_JOB_ID=123 SLURM_JOB_NODELIST='n[1-2]' SLURM_RESTART_COUNT=4; taskset -c 0 " +
                  trainer_path() + fmt::format(" --config {} --run.dir {}", experiment_.config(), run)));
  const std::string first = result.output.substr(0, result.output.find('\n'));
  expect_parts(first, {"; 1 core a rank; Slurm job 123 on n[1-2], start 5"});
  const std::string ranks = read_file(run + "/ranks.txt");
  EXPECT_TRUE(ranks.starts_with("Slurm job 123 on n[1-2], start 5\nrank 0: host ")) << ranks;
  EXPECT_TRUE(ranks.ends_with(", cores 0\n")) << ranks;
}

TEST_F(Run, TheModelCanBeEvaluatedAgainOnAnotherNumberOfRanks) {
  const std::string run = trained(2, "--data.validation 'share(0.2)'");
  std::map<std::string, Json> last;
  for (const Json& line : metric_lines(run + "/metrics.jsonl", "evaluation")) last[line.at("split")] = line;
  ASSERT_EQ(last.size(), 2);
  for (const int ranks : {1, 3}) {
    const ProcessResult result = succeed(ranks, "eval --model " + run);
    for (const auto& [split, evaluation] : last) {
      expect_parts(result.output,
                   {fmt::format("{}: {} samples, loss {:.5g}, accuracy", split,
                                evaluation.at("samples").get<Index>(), evaluation.at("loss").get<double>())});
    }
    expect_parts(result.output, {"confusion matrix"});
  }
  const ProcessResult both =
      succeed(1, fmt::format("eval --model {} --data.validation {} --data.validation_labels {}", run,
                             experiment_.test().images, experiment_.test().labels));
  expect_parts(both.output,
               {fmt::format("validation: {} samples", last.at("test").at("samples").get<Index>())});
}

TEST_F(Run, TheMetricsAskedForAreToldEverywhere) {
  const std::string config = experiment_.config("[eval]\nmetrics = [\"recall\", \"auc\"]\n");
  const std::string run = experiment_.fresh_run();
  const ProcessResult trained = succeed(3, fmt::format("--config {} --run.dir {}", config, run));
  const Json last = metric_lines(run + "/metrics.jsonl").back();
  const auto auc = last.at("auc").get<double>();
  EXPECT_GT(auc, 0.5);
  EXPECT_LT(auc, 1);
  const std::string told = fmt::format("recall {:.5g}, auc {:.5g}", last.at("recall").get<double>(), auc);
  expect_parts(trained.output, {told + ";"});
  Json evaluation = Json::parse(read_file(run + "/summary.json")).at("evaluation");
  EXPECT_EQ(evaluation.at("per_class").size(), 4U);
  for (const char* table : {"per_class", "reliability"})
    evaluation.erase(table);  // that only the summary has
  EXPECT_EQ(evaluation, last);
  EXPECT_FALSE(last.contains("precision"));
  const ProcessResult again = run_trainer(2, "eval --model " + run);
  expect_parts(again.output, {told + "\n"});

  const ProcessResult refused =
      ended_with(run_trainer(1, fmt::format("plan --config {} --eval.metrics auc,r2", config)), 2);
  expect_parts(refused.errors, {"eval.metrics: 'r2' is not defined for this train.loss and its targets"});
}

TEST_F(Run, TheResolvedConfigRepeatsTheRun) {
  const std::string first = experiment_.fresh_run();
  const std::string second = experiment_.fresh_run();
  succeed(1, words(first, "--train.lr 0.1"));
  succeed(1, fmt::format("--config {}/config.toml --run.dir {}", first, second));
  EXPECT_TRUE(read_file(first + "/model.safetensors") == read_file(second + "/model.safetensors"));
}

TEST_F(Run, TheModelFileIsWhatTheSafetensorsFormatSays) {
  const std::string run = trained(1);
  const std::string file = read_file(run + "/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const Json header = Json::parse(file.substr(8, length));
  EXPECT_EQ(header.at("0.weight").at("shape"), Json({16, 12}));
  EXPECT_EQ(header.at("0.weight").at("dtype"), "F32");
  EXPECT_EQ(header.at("2.bias").at("data_offsets")[1].get<std::size_t>(), file.size() - 8 - length);
}

TEST_F(Run, AFlagReplacesItsAlternativeInTheFile) {
  const std::string run = trained(1, "--train.steps 3");
  EXPECT_EQ(Json::parse(read_file(run + "/summary.json")).at("steps"), 3);
}

TEST_F(Run, DrawsALiveLineOnATerminalOnly) {
  const auto output = [&](const std::string& before, const std::string& redirection) {
    const std::string command = fmt::format(
        "{} {} --config {} --run.dir {} --train.steps 9 --debug.delay_rank 0 --debug.delay_ms 120 {}", before,
        trainer_path(), experiment_.config(), experiment_.fresh_run(), redirection);
    const ProcessResult result =
        succeeded(run_command("script --quiet --return --command '" + command + "; exit $?' /dev/null"));
    return result.output;
  };
  const std::string live = output("TERM=xterm", "");
  expect_parts(live, {"\r[=="});
  // The first row knows of no speed yet; later ones do.
  expect_no_parts(live.substr(0, live.find('\r', live.find("\r[") + 1)), {"samples/s"});
  expect_parts(live, {" samples/s  ", " s left"});
  expect_parts(live, {"\033[1mdone:\033[0m"});
  std::size_t width = 0;
  bool is_code = false;
  for (const char c : live) {
    is_code = (is_code && c != 'm') || c == '\033';
    if (is_code || c == 'm') continue;
    width = c == '\r' || c == '\n' ? 0 : width + 1;
    ASSERT_LE(width, 80U) << live;
  }
  for (const auto& [before, redirection] : {std::pair{"TERM=xterm", "| cat"}, {"TERM=dumb", ""}}) {
    const std::string plain = output(before, redirection);
    expect_no_parts(plain, {"\r[", "\033"});
  }
}

class Plan : public SmallRuns {};

TEST_F(Plan, NeedsNoLauncherAndShowsWorldsSideBySide) {
  const ProcessResult result = succeed("plan --config " + experiment_.config() + " --np 1,2,4,8");
  expect_parts(
      result.output,
      {"9 (rounded up, last: 11)  9 (rounded up, last: 11)  9 (rounded up, last: 11)  9 (rounded "
       "up, last: 11)",
       "sum of the gradients of 24 samples over 8 replicas, divided by 24", "each example is seen once"});
}

std::string synthetic_plan(const std::string& flags) {
  return succeed("plan --config " LOCKSTEP_TEST_DATA
                 "/end_to_end/synthetic.toml --np 1 --data.synthetic_rows 650000 " +
                 flags)
      .output;
}

TEST_F(Plan, AnswersTheClassicQuestions) {
  expect_parts(synthetic_plan("--train.global_batch 128 --train.replicas 1"),
               {"5,079 (rounded up, last: 16)"});
  const std::string full =
      synthetic_plan("--train.per_replica_batch 128 --train.replicas 6 --data.mode full");
  expect_parts(full, {"3,900,000 samples, each example 6 times."});
  const std::string eight = synthetic_plan("--train.global_batch 64 --train.replicas 8");
  expect_parts(eight, {"gradients of 64 samples over 8 replicas, divided by 64"});
}

TEST(Help, FitsAScreenAndVersionNamesTheBuild) {
  const ProcessResult help = succeed("--help");
  EXPECT_LE(count_of(help.output, "\n"), 50) << help.output;
  expect_parts(help.output, {"plan", "eval", "reference", "--config"});
  const ProcessResult version = run_trainer("--version");
  expect_parts(version.output, {"lockstep 0.1.0"});
  expect_parts(version.output,
               {"commit: ", "build: ", "MPI: ", "kernels: ", "libraries: Eigen3 ", "\n  HDF5"});
}

TEST(Version, IsWrittenForPrograms) {
  const ProcessResult version = succeed("--version --json");
  const Json json = Json::parse(version.output);
  EXPECT_EQ(json.at("name"), "lockstep");
  EXPECT_EQ(json.at("version"), LOCKSTEP_VERSION);
  EXPECT_EQ(json.at("libraries").at("zlib").get<std::string>().find('?'), std::string::npos);
  for (const char* fact : {"commit", "build_type", "architecture", "compiler", "mpi", "kernels", "bf16"})
    EXPECT_FALSE(json.at(fact).get<std::string>().empty()) << fact;
  for (const char* name : {"ONNX", "HDF5", "ZIP", "ISAL", "CHARTJS"}) {
    const Json& feature = json.at("features").at(name);
    EXPECT_NE(feature.at("built_in").get<bool>(), feature.at("version") == "") << feature;
    for (const char* text : {"library", "gives", "without", "debian_packages"})
      EXPECT_FALSE(feature.at(text).get<std::string>().empty()) << feature;
  }
  const TemporaryDirectory directory;
  const std::string file = directory / "version.json";
  succeed("--version --json " + file);
  EXPECT_EQ(read_file(file), version.output);
}

class RecordTest : public SmallRuns {
 protected:
  std::string arguments(const std::string& flags = "") const {
    return saving_arguments(experiment_, run_, "--train.keep best " + flags);
  }
  ProcessResult train(int ranks, const std::string& flags = "") const {
    return run_trainer(ranks, arguments(flags));
  }
  Json record() const { return Json::parse(read_file(run_ + "/run.json")); }
  Json status() const { return json_of(run_trainer("status " + run_ + " --json -")).at(0); }
  // Until the record says that the run is as far.
  bool reaches(Index steps) const {
    for (int tries = 0; tries < 600; ++tries) {
      if (std::filesystem::exists(run_ + "/run.json") && record()["progress"]["steps"] >= steps) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  const std::string run_ = experiment_.fresh_run();
};

TEST_F(RecordTest, OfACompleteRunHasWhatItsOtherFilesHave) {
  const ProcessResult result = succeeded(train(2));
  const Json summary = Json::parse(read_file(run_ + "/summary.json"));
  const Json found = record();
  EXPECT_EQ(found["state"], "done");
  EXPECT_EQ(found["reason"], "");
  EXPECT_EQ(found["exit_code"], 0);
  EXPECT_EQ(found["result"], summary);
  EXPECT_EQ(found["config"], summary["config"]);
  EXPECT_EQ(found["progress"]["steps"], summary["steps"]);
  EXPECT_EQ(found["plan"]["ranks"], 2);
  EXPECT_EQ(found["plan"]["steps"], 9);
  EXPECT_EQ(found["plan"]["rows"], 203);
  EXPECT_EQ(found["launch"]["hosts"].size(), 2U);
  EXPECT_EQ(found["launch"]["resumed_at"], Json::array());
  EXPECT_EQ(found["kept"]["step"], summary["kept"]["step"]);
  EXPECT_EQ(found["deciding"]["validation"]["value"], summary["kept"]["value"]);
  EXPECT_EQ(found["last"]["test"]["values"]["loss"], summary["evaluation"]["loss"]);
  EXPECT_EQ(found["last"]["test"]["weights"], "best");
  for (const Json& name : found["files"])
    EXPECT_TRUE(std::filesystem::exists(run_ + "/" + name.get<std::string>())) << name;
  EXPECT_EQ(status()["state"], "done");
  EXPECT_EQ(status()["steps"], 9);
}

TEST_F(RecordTest, OfARunThatWasKilledSaysSoAndTheNextStartGoesOn) {
  const std::string slow = "--train.epochs 4 --debug.delay_rank 0 --debug.delay_ms 100";
  {
    RunningJob job(2, arguments(slow));
    ASSERT_TRUE(reaches(6)) << job.errors();
    EXPECT_EQ(status()["state"], "running");
    EXPECT_EQ(status()["planned_steps"], 36);
    ::kill(record()["heartbeat"]["pid"].get<pid_t>(), SIGKILL);
    EXPECT_NE(job.wait(60), 0);
  }
  EXPECT_EQ(record()["state"], "running") << "nobody was left to write it";
  EXPECT_EQ(status()["state"], "killed");
  EXPECT_TRUE(record()["exit_code"].is_null());
  const Index saved = newest_checkpoint(run_);
  succeeded(train(2, "--train.epochs 4"));
  EXPECT_EQ(status()["state"], "done");
  EXPECT_EQ(record()["launch"]["resumed_at"], Json({saved}));
  EXPECT_EQ(record()["progress"]["steps"], 36);
}

TEST_F(RecordTest, OfARunThatStoppedOrFailedHasTheReason) {
  {
    RunningJob job(2, arguments("--train.epochs 40 --debug.delay_rank 0 --debug.delay_ms 100"));
    ASSERT_TRUE(reaches(3)) << job.errors();
    ::kill(record()["heartbeat"]["pid"].get<pid_t>(), SIGTERM);
    const int exit_code = job.wait(60);
    EXPECT_EQ(exit_code, record()["exit_code"]) << job.errors();
  }
  EXPECT_EQ(record()["state"], "stopped");
  expect_parts(record()["reason"].get<std::string>(), {" steps by SIGTERM"});
  const ProcessResult failed = train(
      2,
      "--train.epochs 40 --debug.nan_replica 0 --debug.nan_step 200 --debug.nan_steps 1 --train.on_nan stop");
  ASSERT_NE(failed.exit_code, 0);
  EXPECT_EQ(record()["state"], "failed") << failed.errors;
  EXPECT_EQ(record()["exit_code"], failed.exit_code);
  EXPECT_NE(failed.errors.find(record()["reason"].get<std::string>()), std::string::npos)
      << "in the words of the error";
  EXPECT_EQ(record()["launch"]["resumed_at"].size(), 1U);
}

// No viewer reads the log.
TEST_F(RecordTest, OnlyTheRecordTellsHowARunEnded) {
  succeeded(train(1));
  for (const char* name : {"log.txt", "plan.txt", "ranks.txt", "summary.json"})
    std::filesystem::remove(run_ + "/" + name);
  EXPECT_EQ(status()["state"], "done");
  const Json compared = json_of(run_trainer("compare " + run_ + " --json -"));
  EXPECT_EQ(compared[0]["state"], "done");
  const Json page = json_of(run_trainer("report " + run_ + " --json -"))["runs"][0];
  EXPECT_EQ(page["state"], "done");
  EXPECT_FALSE(page["plan"].empty());
  EXPECT_EQ(page["placement"].size(), 1U);
  std::filesystem::remove(run_ + "/run.json");
  EXPECT_EQ(status()["state"], "damaged");
  EXPECT_EQ(status()["steps"], 9);
  EXPECT_EQ(json_of(run_trainer("compare " + run_ + " --json -"))[0]["best"]["split"], "validation");
}

}  // namespace
}  // namespace lockstep::test::run_test
