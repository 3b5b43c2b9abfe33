#include "support/small_experiment.h"

#include <regex>

#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/trainer_process.h"

namespace lockstep::test {

std::string SmallExperiment::config(const std::string& extra) const {
  const std::string path = directory_ / "run.toml";
  write_file_atomically(
      path,
      fmt::format("[data]\ntrain = \"{}\"\ntrain_labels = \"{}\"\ntest = \"{}\"\ntest_labels = \"{}\"\n"
                  "[model]\nlayers = \"dense(16) relu dense(4)\"\n"
                  "[train]\noptimizer = \"sgd\"\nlr = 0.05\nepochs = 2\nglobal_batch = 24\nreplicas = 8\n{}",
                  train_.images, train_.labels, test_.images, test_.labels, extra));
  return path;
}

std::string SmallExperiment::fresh_run() const {
  return directory_ / ("run-" + std::to_string(++runs_));
}

std::string SmallRuns::words(const std::string& run, const std::string& flags) const {
  return fmt::format("--config {} --run.dir {} {} {}", experiment_.config(), run, flags_, flags);
}

std::string SmallRuns::trained(int ranks, const std::string& flags) const {
  std::string run = experiment_.fresh_run();
  succeed(ranks, words(run, flags));
  return run;
}

nlohmann::json SmallRuns::summarised(int ranks, const std::string& flags) {
  run_ = experiment_.fresh_run();
  output_ = succeed(ranks, words(run_, flags)).output;
  return parse_json<nlohmann::json>(read_file(run_ + "/summary.json"));
}

void SmallRuns::go_on(int ranks, const std::string& run, const std::string& flags, int fails_at) const {
  const std::string fails =
      fails_at > 0 ? fmt::format(" --debug.fail_rank {} --debug.fail_step {}", ranks - 1, fails_at) : "";
  const ProcessResult result = run_trainer(ranks, words(run, flags + fails));
  EXPECT_EQ(result.exit_code == 0, fails_at == 0) << result.errors << result.output;
}

void SmallRuns::expect_refused(int ranks, const std::string& flags, const std::vector<std::string>& parts,
                               int exit_code) const {
  const std::string run = experiment_.fresh_run();
  const testing::ScopedTrace trace(__FILE__, __LINE__, flags);
  expect_failed(run_trainer(ranks, words(run, flags)), exit_code, parts);
  EXPECT_FALSE(std::filesystem::exists(run)) << "a refused run left a directory";
}

std::string saving_arguments(const SmallExperiment& experiment, const std::string& run,
                             const std::string& flags, bool validated) {
  const std::string validation = fmt::format("--data.validation {} --data.validation_labels {} ",
                                             experiment.test().images, experiment.test().labels);
  return fmt::format(
      "--config {} --run.dir {} --run.progress none --run.log_every 3 --distribute.reduction ordered "
      "--train.momentum 0.9 --train.epochs 1 --eval.every '0.5 epochs' --checkpoint.every '3 steps' "
      "--checkpoint.wait true --checkpoint.keep 1 {}--train.early_stopping_metric accuracy {}",
      experiment.config(), run, validated ? validation : "", flags);
}

std::string checkpoint_of(const std::string& run, Index step) {
  return CheckpointDirectory(run + "/checkpoints").finished(step);
}

std::vector<Index> finished_checkpoints(const std::string& run) {
  std::vector<Index> steps = CheckpointDirectory(run + "/checkpoints").steps();
  std::ranges::reverse(steps);
  return steps;
}

Index newest_checkpoint(const std::string& run) {
  const std::vector<Index> finished = finished_checkpoints(run);
  return finished.empty() ? -1 : finished.back();
}

std::vector<std::string> unfinished_names(const std::string& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (entry.path().filename().string().find(".partial") != std::string::npos) names.push_back(entry.path());
  }
  return names;
}

std::string model_of(const std::string& run) {
  return read_file(run + "/model.safetensors");
}

std::string metrics_of(const std::string& run) {
  static const std::regex kTimes(
      "\"(samples_per_second|seconds)\":[^,}]*|\"time\":\\{[^}]*\\}|\\{\"kind\":\"ranks\"[^\n]*\n");
  return std::regex_replace(read_file(run + "/metrics.jsonl"), kTimes, "");
}

void expect_same_run(const std::string& found, const std::string& expected) {
  EXPECT_TRUE(model_of(found) == model_of(expected)) << "another model";
  EXPECT_EQ(metrics_of(found), metrics_of(expected));
}

}  // namespace lockstep::test
