#include "output_settings.h"

#include "catalogs.h"
#include "lockstep/train/storage/checkpoint/interval.h"

namespace lockstep {
namespace {

std::vector<HyperParameter> hyperparameters(const Config& config, const std::set<std::string>& given) {
  std::vector<HyperParameter> parameters;
  for (const auto& [key, value] : result_options(config)) {
    if (given.contains(key)) parameters.push_back({key, value});
  }
  return parameters;
}

std::vector<std::string> tensor_names(const Model& model) {
  std::vector<std::string> names;
  for (const ParamInfo& param : model.layout().params) names.push_back(param.name);
  return names;
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

RunOutputSettings output_settings(const Experiment& experiment, const RunPlan& plan,
                                  const std::set<std::string>& given) {
  const Config& config = experiment.config;
  RunOutputSettings settings{
      .directory = RunDirectory{config.run.dir},
      .progress = config.run.progress,
      .whole = plan.whole_run(),
      .evaluations = {.every = parse_training_interval("eval.every", config.eval.every).training,
                      .validation = experiment.validation != nullptr,
                      .test = experiment.test != nullptr},
      .measure = shown_measure(experiment, given),
      .hyperparameters = std::nullopt,
      .tensors = tensor_names(*experiment.model)};
  if (config.report.tensorboard) settings.hyperparameters = hyperparameters(config, given);
  return settings;
}

}  // namespace lockstep
