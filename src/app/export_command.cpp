#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "experiment.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/train/storage/exporter.h"
#include "outputs.h"
#include "trained_model.h"

namespace lockstep {

namespace {

void export_schema(const RunDirectory& directory, const std::string& output) {
  std::string schema = directory.schema().string();
  if (!is_stream(output)) {
    write_output(schema_beside(output), read_file(schema));
    schema = schema_beside(output);
  }
  log_info("what makes its features of the columns of a table: {}", schema);
}

}  // namespace

int export_command(const CommandLine& line) {
  const ExporterEntry& exporter = find_entry(exporter_catalog(), "export format", line.format);
  if (!exporter.feature.empty()) require_feature(exporter.feature, "--format " + exporter.name);
  const RunDirectory directory = open_run_directory(line.model);
  check_outputs(line, files_read(line));
  const CommandLine of_run = with_config_of_run(line, directory);
  const LoadedConfig loaded = load_checked_config(of_run, read_config_file(of_run.config_file), {});
  const Config& config = loaded.config;
  TrainedModel trained = load_trained_model(directory, config);
  const Normaliser normaliser(config.data.mean, config.data.std, trained.model->input().size());
  const bool of_table = std::filesystem::exists(directory.schema());
  const std::vector<LabelScale> scales =
      read_label_scales(of_table ? read_file(directory.schema().string()) : "");
  const auto loss = find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
  OutputFile file(line.output);
  exporter.write({.model = *trained.model,
                  .store = trained.store(),
                  .normaliser = normaliser,
                  .form = loss->form(),
                  .label_scales = scales,
                  .temperature = trained.temperature},
                 file);
  file.commit();
  log_info("exported {} numbers in {} tensors to {} ({}, {})",
           with_commas(trained.model->stored_layout().count()), trained.model->stored_layout().params.size(),
           describe_output(line.output), exporter.name, human_bytes(static_cast<double>(file.bytes())));
  if (trained.temperature != 1) {
    log_info(
        "calibrated with temperature {:.6g}: the ONNX graph divides the outputs by it; whoever computes "
        "outputs "
        "from the weights of another format has to do so",
        trained.temperature);
  }
  if (of_table) export_schema(directory, line.output);
  return 0;
}

}  // namespace lockstep
