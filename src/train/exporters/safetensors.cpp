// The file of a run as it is: its names and shapes are those of torch.nn.Sequential.
#include "entries.h"
#include "lockstep/train/model_file.h"

namespace lockstep {

ExporterEntry safetensors_exporter() {
  return {.name = "safetensors",
          .help = "one tensor for each of torch.nn.Sequential's, for load_state_dict and train.init",
          .write = [](const ModelToExport& exported, const std::filesystem::path& path) {
            save_model(path, exported.store, exported.model.input());
          }};
}

}  // namespace lockstep
