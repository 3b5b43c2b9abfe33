#include "support/small_experiment.h"

#include "lockstep/base/file.h"
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

void SmallRuns::expect_refused(int ranks, const std::string& flags, const std::vector<std::string>& parts,
                               int exit_code) const {
  const std::string run = experiment_.fresh_run();
  const testing::ScopedTrace trace(__FILE__, __LINE__, flags);
  expect_failed(run_trainer(ranks, words(run, flags)), exit_code, parts);
  EXPECT_FALSE(std::filesystem::exists(run)) << "a refused run left a directory";
}

}  // namespace lockstep::test
