// The file of a run as it is: its names and shapes are those of torch.nn.Sequential.
#include <fmt/format.h>

#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

void write_safetensors(const ModelToExport& exported, OutputFile& output) {
  ModelFacts facts;
  if (exported.temperature != 1) facts[kTemperatureFact] = fmt::format("{}", exported.temperature);
  if (exported.threshold) facts[kThresholdFact] = fmt::format("{}", *exported.threshold);
  const ModelBytes bytes(*exported.store.layout, {.weights = exported.store.values, .state = {}},
                         exported.model.input(), facts);
  for (const std::string_view part : bytes.parts()) output.write(part);
}

}  // namespace lockstep
