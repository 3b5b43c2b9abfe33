#include "lockstep/report/live/run_output.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"

namespace lockstep {

MetricValues measures_of(const EvalMetrics& metrics) {
  MetricValues values{{"loss", metrics.loss}};
  if (metrics.accuracy) values.emplace_back("accuracy", *metrics.accuracy);
  if (metrics.top_k_accuracy) values.emplace_back("top_k_accuracy", *metrics.top_k_accuracy);
  for (const MetricValue& other : metrics.others) {
    if (other.value) values.emplace_back(other.name, *other.value);
  }
  std::erase_if(values, [](const auto& value) { return !std::isfinite(value.second); });
  return values;
}

RunOutput::RunOutput(RunOutputSettings settings, OutputStart start)
    : metrics_(settings.directory.metrics(), start.metrics_bytes),
      record_(settings.record),
      average_(std::move(settings.average)),
      line_(settings.progress, settings.whole, settings.evaluations, std::move(settings.measure)),
      incomplete_(std::move(start.incomplete)) {
  if (settings.hyperparameters) {
    events_.emplace(settings.directory.tensorboard(), start.step, *settings.hyperparameters,
                    settings.tensors);
  }
  if (record_ == nullptr) return;
  // The record begins with the lines of earlier starts.
  record_->change([&](RunRecord& record) { replay_metrics(settings.directory.metrics(), record, average_); });
}

void RunOutput::record_training(const Progress& progress, double loss, double samples_per_second) {
  if (record_ == nullptr) return;
  record_->change([&](RunRecord& record) {
    record.kept.average = average_(progress.steps);
    record.add_training(progress, loss, samples_per_second);
  });
}

void RunOutput::record_evaluation(const std::string& split, const Progress& progress,
                                  const MetricValues& values) {
  if (record_ == nullptr) return;
  record_->change([&](RunRecord& record) {
    record.kept.average = average_(progress.steps);
    record.add_evaluation(split, progress, values);
  });
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
