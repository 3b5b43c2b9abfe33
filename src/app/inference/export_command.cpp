#include <optional>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/nn/next_position.h"
#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

namespace {

// The texts and the numbers of a part of the summary of a run, without its lists.
nlohmann::ordered_json plain_part(const nlohmann::ordered_json& summary, const char* name) {
  nlohmann::ordered_json plain = nlohmann::ordered_json::object();
  const auto found = summary.find(name);
  if (found == summary.end() || !found->is_object()) return plain;
  for (const auto& [key, value] : found->items()) {
    if (value.is_primitive()) plain[key] = value;
  }
  return plain;
}

// How good the model is, by the record of its run: a checkpoint has none, and one that is cut off says
// nothing.
std::vector<std::pair<std::string, std::string>> onnx_facts(const RunDirectory& directory) {
  nlohmann::ordered_json summary;
  try {
    if (const auto record = read_run_record(directory)) summary = record->result;
  } catch (const DataError&) {
    return {};
  }
  if (!summary.is_object()) return {};
  const nlohmann::ordered_json metric{{"kept", plain_part(summary, "kept")},
                                      {"evaluation", plain_part(summary, "evaluation")}};
  return {{"metric", metric.dump()}};
}

void export_schema(const TrainedModel& trained, const std::string& output, bool is_text) {
  std::string schema = trained.directory().schema().string();
  if (!is_stream(output)) {
    write_output(schema_beside(output), trained.schema());
    schema = schema_beside(output);
  }
  log_info("{}: {}", is_text ? "its vocabulary" : "what makes its features of the columns of a table",
           schema);
}

}  // namespace

int export_command(const CommandLine& line) {
  const ExporterEntry& exporter = find_entry(exporter_catalog(), "export format", line.text("format"));
  if (!exporter.feature.empty()) require_feature(exporter.feature, "--format " + exporter.name);
  TrainedModel trained(open_finished_run(line));
  const Config& config = trained.config;
  const bool has_schema = !trained.schema().empty();
  const bool is_text = read_vocabulary(trained.schema()).has_value();
  if (exporter.encodes && trained.loss->form().positions > 0 && has_schema && !is_text) {
    throw ConfigError(
        "the model gives a class for each position, for which a graph of the columns of a table has no "
        "answer: export it for their features (--format onnx_features)");
  }
  const std::optional<TableSchema> schema = read_table_schema(trained.schema());
  const std::vector<LabelScale> scales = schema ? label_scales(*schema) : std::vector<LabelScale>();
  const std::optional<double> threshold = trained.threshold();
  const std::string output = line.text("output");
  OutputFile file(output);
  exporter.write({.model = *trained.model,
                  .store = trained.store(),
                  .normaliser = *trained.normaliser,
                  .form = trained.loss->form(),
                  .label_scales = scales,
                  .temperature = trained.temperature(),
                  .threshold = threshold,
                  .lengths = !config.data.train_lengths.empty(),
                  .tokens = is_text,
                  .schema = schema ? &*schema : nullptr,
                  .facts = onnx_facts(trained.directory())},
                 file);
  file.commit();
  const Layout& stored = trained.model->stored_layout();
  log_info("exported {} in {} to {} ({}, {})", plural(stored.count(), "number"),
           plural(std::ssize(stored.params), "tensor"), describe_output(output), exporter.name,
           human_bytes(file.bytes()));
  if (exporter.name.starts_with("onnx") && !config.data.train_lengths.empty())
    log_info("its input 'lengths', int64 [N], is the positions of each record that count");
  if (exporter.name.starts_with("onnx") && config.model.precision == Precision::kBf16) {
    log_info(
        "the graph computes in fp32, while trainer predict and eval compute in bf16 as training did: outputs "
        "differ in their third digit, and so do answers of records that are near the limit");
  }
  constexpr const char* kOtherFormats = "whoever computes from the weights of another format has to do so";
  if (trained.temperature() != 1) {
    log_info("calibrated with temperature {:.6g}: the ONNX graph divides the outputs by it; {}",
             trained.temperature(), kOtherFormats);
  }
  if (threshold) {
    log_info("yes from a probability of {:.6g} on: the ONNX graph answers by it; {}", *threshold,
             kOtherFormats);
  }
  const bool complete = exporter.encodes && schema;
  if (complete) {
    log_info("its inputs are the columns of the table");
    for (const TableColumn& column : schema->columns) {
      if (column.is_feature() && column.fold_case)
        log_info("column {}: the graph knows texts in small letters, with one blank between words, as in {}",
                 in_quotes(column.name),
                 column.values.empty() ? "'new york'" : in_quotes(column.values.front()));
    }
  }
  if (exporter.encodes && is_text) {
    log_info("its input is the numbers of tokens, int64 [N, T], with {} T = {}",
             is_causal(*trained.model) ? "at most" : "exactly", trained.model->input().dims.front());
  }
  if (has_schema && !complete) export_schema(trained, output, is_text);
  return 0;
}

}  // namespace lockstep
