#include "lockstep/report/live/run_output.h"

#include <algorithm>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"

namespace lockstep {
RunOutput::RunOutput(RunOutputSettings settings, OutputStart start)
    : metrics_(settings.directory.metrics(), start.metrics_bytes),
      line_(settings.progress, settings.whole, settings.evaluations, std::move(settings.measure)),
      incomplete_(std::move(start.incomplete)) {
  if (settings.hyperparameters) {
    events_.emplace(settings.directory.tensorboard(), start.step, *settings.hyperparameters,
                    settings.tensors);
  }
}

void RunOutput::on_audit(Index epoch, Index samples, Index times) {
  log_info("audit: epoch {} used {} samples, each {} time{}", epoch, with_commas(samples), times,
           times == 1 ? "" : "s");
}

std::vector<std::string> RunOutput::incomplete_files() const {
  const RunDirectory names;
  std::vector<std::string> files = incomplete_;
  const auto add = [&](const std::string& file) {
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  };
  if (log_file_lost_lines()) add(names.log().string());
  if (metrics_.failed()) add(names.metrics().string());
  if (events_ && events_->failed()) add(names.tensorboard().string());
  return files;
}

}  // namespace lockstep
