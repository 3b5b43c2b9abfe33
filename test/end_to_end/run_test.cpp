// What a run leaves behind and says, as a user sees it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/small_experiment.h"
#include "support/trainer_process.h"

namespace lockstep::test::run_test {
namespace {

using Json = nlohmann::json;

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Run, LeavesItsRecordsBehind) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  const ProcessResult result =
      run_trainer(2, fmt::format("--config {} --run.dir {} --run.log_every 5 --run.progress plain",
                                 experiment.config(), run));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_TRUE(result.output.starts_with("2 ranks on 1 host, 8 replicas, 1 thread, precision fp32; "))
      << result.output;
  for (const char* part : {"rank 0 loaded 103 rows", "rank 1 loaded 100 rows", "plan: ", "done: test loss",
                           "samples/s", "waiting", "written: "}) {
    EXPECT_TRUE(has(result.output, part)) << part << " is missing in:\n" << result.output;
  }
  EXPECT_EQ(result.output.find('\r'), std::string::npos) << "a progress line was drawn into a file";

  // 203 rows in batches of 24: nine steps an epoch, the last with 11 samples.
  const std::vector<Json> metrics = json_lines(run + "/metrics.jsonl");
  int trained = 0;
  for (const Json& line : metrics) {
    if (line.at("kind") != "train") continue;
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
  EXPECT_TRUE(has(read_file(run + "/plan.txt"), "steps per epoch"));
  EXPECT_TRUE(has(read_file(run + "/log.txt"), "done: test loss"));
}

// 203 rows in batches of 101: the last step of each of two epochs has one sample.
TEST(Run, WarnsOnceOfASingleValueInBatchNorm) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  const std::string flags = fmt::format(
      "--config {} --train.replicas 2 --train.global_batch 101 "
      "--model.layers 'dense(4) batch_norm relu dense(4)'",
      experiment.config());
  const ProcessResult result = run_trainer(2, flags + " --run.dir " + run);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(count_of(result.errors, "step 3 gives 1 of 2 replicas a single value"), 1) << result.errors;
  EXPECT_EQ(count_of(result.errors, "single value"), 1) << result.errors;
  EXPECT_TRUE(has(result.errors, "train.tail = \"drop\"")) << result.errors;
  EXPECT_TRUE(has(result.output, "6 steps (2 with a single value in batch norm)")) << result.output;
  EXPECT_TRUE(
      has(read_file(run + "/plan.txt"), "last step of each epoch gives 1 of 2 replicas a single value"));
  EXPECT_EQ(Json::parse(read_file(run + "/summary.json")).at("single_value_steps"), 2);
  const ProcessResult dropped = run_trainer(flags + " --train.tail drop --run.dir " + experiment.fresh_run());
  EXPECT_FALSE(has(dropped.errors + dropped.output, "single value")) << dropped.errors;
}

TEST(Run, SaysWhereItsRanksAre) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  const ProcessResult result =
      run_command("export SLURM_JOB_ID=123 SLURM_JOB_NODELIST='n[1-2]' SLURM_RESTART_COUNT=4; taskset -c 0 " +
                  trainer_path() + fmt::format(" --config {} --run.dir {}", experiment.config(), run));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::string first = result.output.substr(0, result.output.find('\n'));
  EXPECT_TRUE(has(first, "; 1 core a rank; Slurm job 123 on n[1-2], start 5")) << first;
  const std::string ranks = read_file(run + "/ranks.txt");
  EXPECT_TRUE(ranks.starts_with("Slurm job 123 on n[1-2], start 5\nrank 0: host ")) << ranks;
  EXPECT_TRUE(ranks.ends_with(", cores 0\n")) << ranks;
}

TEST(Run, TheModelCanBeEvaluatedAgainOnAnotherNumberOfRanks) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  const ProcessResult trained = run_trainer(
      2, fmt::format("--config {} --data.validation_share 0.2 --run.dir {}", experiment.config(), run));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  std::map<std::string, Json> last;
  for (const Json& line : json_lines(run + "/metrics.jsonl")) {
    if (line.at("kind") == "evaluation") last[line.at("split")] = line;
  }
  ASSERT_EQ(last.size(), 2);
  for (const int ranks : {1, 3}) {
    const ProcessResult result = run_trainer(ranks, "eval --model " + run);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    for (const auto& [split, evaluation] : last) {
      EXPECT_TRUE(has(result.output, fmt::format("{}: {} samples, loss {:.5g}, accuracy", split,
                                                 evaluation.at("samples").get<Index>(),
                                                 evaluation.at("loss").get<double>())))
          << split << " in:\n"
          << result.output;
    }
    EXPECT_TRUE(has(result.output, "confusion matrix"));
  }
  const ProcessResult both =
      run_trainer(1, fmt::format("eval --model {} --data.validation {} --data.validation_labels {}", run,
                                 experiment.test().images, experiment.test().labels));
  EXPECT_EQ(both.exit_code, 0) << both.errors;
  EXPECT_TRUE(
      has(both.output, fmt::format("validation: {} samples", last.at("test").at("samples").get<Index>())))
      << both.output;
}

TEST(Run, TheMetricsAskedForAreToldEverywhere) {
  const SmallExperiment experiment;
  const std::string config = experiment.config("[eval]\nmetrics = [\"recall\", \"auc\"]\n");
  const std::string run = experiment.fresh_run();
  const ProcessResult trained = run_trainer(3, fmt::format("--config {} --run.dir {}", config, run));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const Json last = json_lines(run + "/metrics.jsonl").back();
  const auto auc = last.at("auc").get<double>();
  EXPECT_GT(auc, 0.5);
  EXPECT_LT(auc, 1);
  const std::string told = fmt::format("recall {:.5g}, auc {:.5g}", last.at("recall").get<double>(), auc);
  EXPECT_TRUE(has(trained.output, told + ";")) << trained.output;
  Json evaluation = Json::parse(read_file(run + "/summary.json")).at("evaluation");
  EXPECT_EQ(evaluation.at("per_class").size(), 4U);
  for (const char* table : {"per_class", "reliability"})
    evaluation.erase(table);  // that only the summary has
  EXPECT_EQ(evaluation, last);
  EXPECT_FALSE(last.contains("precision"));
  const ProcessResult again = run_trainer(2, "eval --model " + run);
  EXPECT_TRUE(has(again.output, told + "\n")) << again.output << again.errors;

  const ProcessResult refused = run_trainer(1, fmt::format("plan --config {} --eval.metrics auc,r2", config));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.errors, "eval.metrics: 'r2' is not defined for this train.loss and its targets"))
      << refused.errors;
}

TEST(Run, TheResolvedConfigRepeatsTheRun) {
  const SmallExperiment experiment;
  const std::string first = experiment.fresh_run();
  const std::string second = experiment.fresh_run();
  ASSERT_EQ(run_trainer(1, fmt::format("--config {} --run.dir {} --train.lr 0.1", experiment.config(), first))
                .exit_code,
            0);
  const ProcessResult again =
      run_trainer(1, fmt::format("--config {}/config.toml --run.dir {}", first, second));
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_TRUE(read_file(first + "/model.safetensors") == read_file(second + "/model.safetensors"));
}

TEST(Run, TheModelFileIsWhatTheSafetensorsFormatSays) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  ASSERT_EQ(run_trainer(1, fmt::format("--config {} --run.dir {}", experiment.config(), run)).exit_code, 0);
  const std::string file = read_file(run + "/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const Json header = Json::parse(file.substr(8, length));
  EXPECT_EQ(header.at("0.weight").at("shape"), Json({16, 12}));
  EXPECT_EQ(header.at("0.weight").at("dtype"), "F32");
  EXPECT_EQ(header.at("2.bias").at("data_offsets")[1].get<std::size_t>(), file.size() - 8 - length);
}

TEST(Run, AFlagReplacesItsAlternativeInTheFile) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  const ProcessResult result =
      run_trainer(1, fmt::format("--config {} --run.dir {} --train.steps 3", experiment.config(), run));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(Json::parse(read_file(run + "/summary.json")).at("steps"), 3);
}

TEST(Run, DrawsALiveLineOnATerminalOnly) {
  const SmallExperiment experiment;
  const auto output = [&](const std::string& before, const std::string& redirection) {
    const std::string command = fmt::format(
        "{} {} --config {} --run.dir {} --train.steps 9 --debug.delay_rank 0 --debug.delay_ms 120 {}", before,
        trainer_path(), experiment.config(), experiment.fresh_run(), redirection);
    const ProcessResult result =
        run_command("script --quiet --return --command '" + command + "; exit $?' /dev/null");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  };
  const std::string live = output("TERM=xterm", "");
  EXPECT_TRUE(has(live, "\r[==")) << live;
  // The first row knows of no speed yet; later ones do.
  EXPECT_FALSE(has(live.substr(0, live.find('\r', live.find("\r[") + 1)), "samples/s")) << live;
  EXPECT_TRUE(has(live, " samples/s  ") && has(live, " s left")) << live;
  EXPECT_TRUE(has(live, "\033[1mdone:\033[0m")) << live;
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
    EXPECT_FALSE(has(plain, "\r[")) << plain;
    EXPECT_FALSE(has(plain, "\033")) << plain;
  }
}

TEST(Plan, NeedsNoLauncherAndShowsWorldsSideBySide) {
  const SmallExperiment experiment;
  const ProcessResult result = run_trainer("plan --config " + experiment.config() + " --np 1,2,4,8");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_TRUE(has(result.output,
                  "9 (rounded up, last: 11)  9 (rounded up, last: 11)  9 (rounded up, last: 11)  9 (rounded "
                  "up, last: 11)"))
      << result.output;
  EXPECT_TRUE(has(result.output, "sum of the gradients of 24 samples over 8 replicas, divided by 24"));
  EXPECT_TRUE(has(result.output, "each example is seen once"));
}

std::string synthetic_plan(const std::string& flags) {
  const ProcessResult result = run_trainer("plan --config " LOCKSTEP_TEST_DATA
                                           "/end_to_end/synthetic.toml --np 1 --data.synthetic_rows 650000 " +
                                           flags);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  return result.output;
}

TEST(Plan, AnswersTheClassicQuestions) {
  EXPECT_TRUE(
      has(synthetic_plan("--train.global_batch 128 --train.replicas 1"), "5,079 (rounded up, last: 16)"));
  const std::string full =
      synthetic_plan("--train.per_replica_batch 128 --train.replicas 6 --data.mode full");
  EXPECT_TRUE(has(full, "3,900,000 samples, each example 6 times.")) << full;
  const std::string eight = synthetic_plan("--train.global_batch 64 --train.replicas 8");
  EXPECT_TRUE(has(eight, "gradients of 64 samples over 8 replicas, divided by 64")) << eight;
}

TEST(Help, FitsAScreenAndVersionNamesTheBuild) {
  const ProcessResult help = run_trainer("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_LE(count_of(help.output, "\n"), 50) << help.output;
  for (const char* word : {"plan", "eval", "reference", "--config"})
    EXPECT_TRUE(has(help.output, word)) << word;
  const ProcessResult version = run_trainer("--version");
  EXPECT_TRUE(has(version.output, "lockstep 0.1.0"));
  for (const char* fact : {"commit: ", "build: ", "MPI: ", "kernels: ", "libraries: Eigen3 ", "\n  HDF5"})
    EXPECT_TRUE(has(version.output, fact)) << version.output;
}

TEST(Version, IsWrittenForPrograms) {
  const ProcessResult version = run_trainer("--version --json");
  EXPECT_EQ(version.exit_code, 0) << version.errors;
  const Json json = Json::parse(version.output);
  EXPECT_EQ(json.at("name"), "lockstep");
  EXPECT_EQ(json.at("version"), LOCKSTEP_VERSION);
  EXPECT_EQ(json.at("libraries").at("zlib").get<std::string>().find('?'), std::string::npos);
  for (const char* fact : {"commit", "build_type", "architecture", "compiler", "mpi", "kernels", "bf16"}) {
    EXPECT_FALSE(json.at(fact).get<std::string>().empty()) << fact;
  }
  for (const char* name : {"ONNX", "HDF5", "ZIP", "ISAL", "CHARTJS"}) {
    const Json& feature = json.at("features").at(name);
    EXPECT_NE(feature.at("built_in").get<bool>(), feature.at("version") == "") << feature;
    for (const char* text : {"library", "gives", "without", "debian_packages"}) {
      EXPECT_FALSE(feature.at(text).get<std::string>().empty()) << feature;
    }
  }
  const TemporaryDirectory directory;
  const std::string file = directory / "version.json";
  EXPECT_EQ(run_trainer("--version --json " + file).exit_code, 0);
  EXPECT_EQ(read_file(file), version.output);
}

}  // namespace
}  // namespace lockstep::test::run_test
