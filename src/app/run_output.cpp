#include "run_output.h"

#include <algorithm>

#include "catalogs.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/report/report_page.h"

namespace lockstep {
namespace {

std::vector<HyperParameter> hyperparameters(const Config& config, const std::set<std::string>& given) {
  std::vector<HyperParameter> parameters;
  Config shown;
  const std::vector<Option> options = declare_options(shown, known_names());  // of the defaults
  shown = config;
  for (const Option& option : options) {
    if (given.contains(option.key) && !names_no_result(option.key) && option.has_value())
      parameters.push_back({option.key, option.text()});
  }
  return parameters;
}

// The measure that the user has chosen, else the one that most look at.
Measure shown_measure(const Experiment& experiment, const std::set<std::string>& given) {
  const char* const key = "train.early_stopping_metric";
  const bool has_accuracy = experiment.loss->targets() != TargetKind::kValue;
  const std::string name = given.contains(key) ? experiment.config.train.early_stopping_metric
                           : has_accuracy      ? "accuracy"
                                               : "loss";
  return {name, experiment.metrics->names(), has_accuracy};
}

}  // namespace

RunOutput::RunOutput(const Experiment& experiment, const RunPlan& plan, const std::set<std::string>& given,
                     OutputStart start)
    : metrics_(RunDirectory{experiment.config.run.dir}.metrics(), start.metrics_bytes),
      line_(experiment.config.run.progress, plan.whole_run(),
            {.every = parse_training_interval("eval.every", experiment.config.eval.every).training,
             .validation = experiment.validation != nullptr,
             .test = experiment.test != nullptr},
            shown_measure(experiment, given)),
      incomplete_(std::move(start.incomplete)) {
  if (!experiment.config.report.tensorboard) return;
  events_.emplace(RunDirectory{experiment.config.run.dir}.tensorboard(), start.step,
                  hyperparameters(experiment.config, given));
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
