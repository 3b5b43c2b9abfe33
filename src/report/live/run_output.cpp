#include "lockstep/report/live/run_output.h"

#include <algorithm>

#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"

namespace lockstep {

RunOutput::RunOutput(RunOutputSettings settings, OutputStart start)
    : record_(settings.record),
      average_(std::move(settings.average)),
      metrics_(settings.directory.metrics(), start.metrics_bytes,
               [this](const nlohmann::ordered_json& json) { record_line(json); }),
      line_(settings.progress, settings.whole, settings.evaluations, std::move(settings.measure)),
      incomplete_(std::move(start.incomplete)) {
  if (settings.hyperparameters) {
    events_.emplace(settings.directory.tensorboard(), start.step, *settings.hyperparameters,
                    settings.tensors);
  }
  if (record_ == nullptr) return;
  // The record begins with the lines of earlier starts.
  record_->change([&](RunRecord& record) {
    read_metrics_lines(settings.directory.metrics(),
                       [&](const MetricsLine& line) { add_line(record, line, average_); });
  });
}

void RunOutput::record_line(const nlohmann::ordered_json& json) {
  if (record_ == nullptr) return;
  const MetricsLine line = metrics_line(json);
  record_->change([&](RunRecord& record) { add_line(record, line, average_); });
}

void RunOutput::on_audit(Index epoch, Index samples, Index times) {
  log_info("audit: epoch {} used {} samples, each {}", epoch, with_commas(samples), plural(times, "time"));
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
