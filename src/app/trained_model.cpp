#include "trained_model.h"

#include <fmt/format.h>

#include "experiment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/data/table/number.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

AlignedBuffer<Scalar> load_stored(const RunDirectory& directory, const Model& model) {
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  load_model(directory.model(), {.layout = &model.stored_layout(), .values = stored.span()});
  return stored;
}

Scalar load_temperature(const RunDirectory& directory, const Config& config) {
  if (!gives_probabilities(config.loss)) return 1;
  const std::optional<Scalar> temperature = ModelFile(directory.model()).temperature();
  if (!temperature && config.train.calibrate != kNoCalibration) {
    log_info(
        "'{}' has no temperature, so its probabilities are not calibrated: that is done at the end of a run",
        directory.model().string());
  }
  return temperature.value_or(1);
}

TrainedModel load_trained_model(const RunDirectory& directory, const Config& config) {
  TrainedModel trained;
  trained.model = make_model(config, ModelFile(directory.model()).input());
  trained.stored = load_stored(directory, *trained.model);
  trained.temperature = load_temperature(directory, config);
  return trained;
}

std::optional<double> threshold_of(const RunDirectory& directory, const Config& config, Index rank) {
  const ThresholdRule rule = parse_threshold("eval.threshold", config.eval.threshold);
  if (rule.measure.empty()) return rule.number;
  const ModelFile file(directory.model());
  const std::optional<double> kept = parse_number(file.fact(kThresholdFact).value_or(""));
  const std::string measure = file.fact(kThresholdMeasureFact).value_or("");
  if (!kept || measure.empty()) {
    if (rank == 0) {
      log_warning(
          "'{}' has no threshold: the end of a run chooses it. The model says yes where that is more "
          "probable than no; --eval.threshold 0.3 sets another one",
          directory.root.string());
    }
    return std::nullopt;
  }
  if (measure == rule.measure) return kept;
  throw ConfigError(
      fmt::format("eval.threshold = \"{}\", but the threshold of '{}', {}, was chosen by \"{}\" when it was "
                  "trained: give a number, or leave that out",
                  rule.measure, directory.root.string(), *kept, measure));
}

CommandLine with_config_of_run(const CommandLine& line, const RunDirectory& directory) {
  CommandLine of_run = line;
  if (of_run.config_file.empty()) of_run.config_file = directory.config().string();
  return of_run;
}

}  // namespace lockstep
