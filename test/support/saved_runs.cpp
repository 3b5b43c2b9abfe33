#include "support/saved_runs.h"

#include <regex>

#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint/directory.h"

namespace lockstep::test {

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
