#include <fmt/format.h>

#include <array>

#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

// These are in files of exporters/. Where the build lacks the library that it needs, a file called "missing"
// says how to get it.
void write_npz(const ModelToExport& exported, OutputFile& output);
void write_onnx(const ModelToExport& exported, OutputFile& output);

namespace {

// The file of a run as it is: its names and shapes are those of torch.nn.Sequential.
void write_safetensors(const ModelToExport& exported, OutputFile& output) {
  ModelFacts facts;
  if (exported.temperature != 1) facts[kTemperatureFact] = fmt::format("{}", exported.temperature);
  if (exported.threshold) facts[kThresholdFact] = fmt::format("{}", *exported.threshold);
  const ModelBytes bytes(*exported.store.layout, {.weights = exported.store.values, .state = {}},
                         exported.model.input(), facts);
  for (const std::string_view part : bytes.parts()) output.write(part);
}

void write_onnx_of_features(const ModelToExport& exported, OutputFile& output) {
  ModelToExport features = exported;
  features.schema = nullptr;
  features.tokens = false;
  write_onnx(features, output);
}

}  // namespace

std::span<const ExporterEntry> exporter_catalog() {
  static const std::array<ExporterEntry, 4> kEntries{{
      {.name = "safetensors",
       .help = "one tensor for each of torch.nn.Sequential's, for load_state_dict and train.init",
       .write = write_safetensors},
      {.name = "npz",
       .help = "one array for each tensor, for numpy.load",
       .feature = "ZIP",
       .write = write_npz},
      {.name = "onnx",
       .help = "an ONNX model (opset 13) from records to predictions, for inference runtimes; of a table "
               "from its columns to the names of classes, or to numbers in its units; of a text from the "
               "numbers of tokens",
       .feature = "ONNX",
       .encodes = true,
       .write = write_onnx},
      {.name = "onnx_features",
       .help =
           "as onnx, but of a table from the features that are made of its columns (schema.json says how), "
           "in one matrix, to probabilities or numbers",
       .feature = "ONNX",
       .write = write_onnx_of_features},
  }};
  return kEntries;
}

}  // namespace lockstep
