#include "trained_model.h"

#include "lockstep/train/storage/model_file.h"

namespace lockstep {

AlignedBuffer<Scalar> load_stored(const RunDirectory& directory, const Model& model) {
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  load_model(directory.model(), {.layout = &model.stored_layout(), .values = stored.span()});
  return stored;
}

TrainedModel load_trained_model(const RunDirectory& directory, const Config& config) {
  TrainedModel trained;
  trained.model = std::make_unique<Model>(config.model, ModelFile(directory.model()).input());
  trained.stored = load_stored(directory, *trained.model);
  return trained;
}

CommandLine with_config_of_run(const CommandLine& line, const RunDirectory& directory) {
  CommandLine of_run = line;
  if (of_run.config_file.empty()) of_run.config_file = directory.config().string();
  return of_run;
}

}  // namespace lockstep
