#include "support/small_experiment.h"

#include <fmt/format.h>

#include "lockstep/base/file.h"

namespace lockstep::test {

std::string SmallExperiment::config(const std::string& extra) const {
  const std::string path = directory_ / "run.toml";
  write_file_atomically(path, fmt::format(R"toml([data]
train = "{}"
train_labels = "{}"
test = "{}"
test_labels = "{}"
[model]
layers = "dense(16) relu dense(4)"
[train]
optimizer = "sgd"
lr = 0.05
epochs = 2
global_batch = 24
replicas = 8
{})toml",
                                          train_.images, train_.labels, test_.images, test_.labels, extra));
  return path;
}

std::string SmallExperiment::fresh_run() const {
  return directory_ / ("run-" + std::to_string(++runs_));
}

}  // namespace lockstep::test
