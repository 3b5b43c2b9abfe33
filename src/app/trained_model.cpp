#include "trained_model.h"

#include "lockstep/train/model_file.h"

namespace lockstep {

TrainedModel load_trained_model(const RunDirectory& directory, const Config& config) {
  TrainedModel trained;
  trained.model = std::make_unique<Model>(config.model, ModelFile(directory.model()).input());
  trained.stored = AlignedBuffer<Scalar>(trained.model->stored_layout().size);
  load_model(directory.model(), trained.store());
  return trained;
}

CommandLine with_config_of_run(const CommandLine& line, const RunDirectory& directory) {
  CommandLine of_run = line;
  if (of_run.config_file.empty()) of_run.config_file = directory.config().string();
  return of_run;
}

}  // namespace lockstep
