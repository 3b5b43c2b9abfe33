// The whole way from a record to a prediction as an ONNX graph: columns of a table, normalisation, model,
// predictions.
// Format: https://github.com/onnx/onnx/blob/main/docs/IR.md
#include "writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "answer.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/onnx_words.h"
#include "table_inputs.h"

namespace lockstep {
namespace {

constexpr Index kIrVersion = 8;
constexpr Index kOpset = 13;
constexpr Index kMlOpset = 2;
constexpr const char* kInputName = "input";
constexpr const char* kOutputs = "outputs";

// Protobuf writes no file of 2 GiB or more; a tensor's name and shape come on top of its numbers.
constexpr Index kMaxBytes = std::numeric_limits<int>::max();
constexpr Index kTensorBytes = 1024;

// Gives the records, [N, dims].
std::string add_records(OnnxGraph& graph, const ModelToExport& exported) {
  const Shape& input = exported.model.input();
  if (exported.schema == nullptr) {
    graph.add_input({.name = kInputName, .sample = input});
    return kInputName;
  }
  const Shape features{{exported.schema->features()}};
  if (features != input) {
    throw DataError(
        fmt::format("the schema of the table has features of the shape {}, but the model takes {}: is "
                    "schema.json that of this run? --format onnx_features does without it",
                    to_string(features), to_string(input)));
  }
  return add_table_inputs(graph, *exported.schema);
}

std::string add_normalisation(OnnxGraph& graph, const ModelToExport& exported, const std::string& records) {
  const Normaliser& normaliser = exported.normaliser;
  if (normaliser.is_identity()) return records;
  const Shape shape = normaliser.mean().size() == 1 ? Shape{} : exported.model.input();
  const std::string mean = graph.add_tensor("normalisation.mean", shape, normaliser.mean());
  const std::string scale = graph.add_tensor("normalisation.scale", shape, normaliser.scale());
  return graph.add("Mul", {graph.add("Sub", {records, mean}), scale});
}

std::vector<std::string> names_of(const OnnxGraph& graph, const std::vector<Range>& ranges,
                                  const Layout& layout) {
  std::vector<std::string> names;
  for (const Range range : ranges) {
    names.push_back(graph.free_name(std::ranges::find(layout.params, range, &ParamInfo::range)->name));
  }
  return names;
}

// Errors: ConfigError naming the layer if there are no words for it.
const OnnxWords& words_of(const ModelOp& op) {
  if (const auto* words = dynamic_cast<const OnnxWords*>(op.layer.get())) return *words;
  throw ConfigError(fmt::format("{}: the export to ONNX has no words for '{}'; export as safetensors or npz",
                                op.title, op.layer->operation().name));
}

// Gives the model's output.
std::string add_layers(OnnxGraph& graph, const Model& model, const std::string& input) {
  std::vector<std::string> outputs;
  for (const ModelOp& op : model.ops()) {
    const Operation operation = op.layer->operation();
    OnnxLayer layer{.in = op.in,
                    .operation = operation,
                    .inputs = {},
                    .tensors = names_of(graph, operation.tensors, model.layout()),
                    .state = names_of(graph, operation.state, model.state_layout())};
    for (const Index from : op.inputs) {
      layer.inputs.push_back(from == kModelInput ? input : at(outputs, from));
    }
    graph.begin_layer(op.path);
    outputs.push_back(words_of(op).add_to(graph, layer));
  }
  return outputs.back();
}

// The outputs of a calibrated model are divided by its temperature.
std::string divide(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  if (exported.temperature == 1) return outputs;
  return graph.add("Div", {outputs, graph.add_number(exported.temperature)});
}

void add_graph(OnnxGraph& graph, const ModelToExport& exported) {
  const Model& model = exported.model;
  const std::string records = add_records(graph, exported);
  graph.begin_layer(kInputName);
  const std::string input = onnx_ordered(graph, add_normalisation(graph, exported, records), model.input());
  const std::string output = add_layers(graph, model, input);
  graph.begin_layer(kOutputs);
  const std::string rows = divide(graph, exported, onnx_rows(graph, output, model.output()));
  const OnnxValue outputs{.name = kOutputs, .sample = {{model.output().size()}}};
  if (exported.schema != nullptr) {
    add_answer(graph, exported, rows);
    graph.add_output(outputs, "Identity", {rows});
  } else {
    add_predictions(graph, exported, graph.add_output(outputs, "Identity", {rows}));
  }
}

void refuse_large(const onnx::ModelProto& file, const Layout& layout) {
  const Index bytes = static_cast<Index>(file.ByteSizeLong()) + layout.count() * Index{sizeof(Scalar)} +
                      std::ssize(layout.params) * kTensorBytes;
  if (bytes <= kMaxBytes) return;
  throw ConfigError(
      fmt::format("this model takes {} as an ONNX file, which holds less than {}; export as "
                  "safetensors or npz",
                  human_bytes(bytes), human_bytes(kMaxBytes)));
}

// Inputs that are not simply what stands in the table.
void log_inputs(const TableSchema& schema) {
  for (const ColumnInput& input : column_inputs(schema)) {
    if (!input.as_is) log_info("input {}: {}", in_quotes(input.name), input.help);
    if (!input.doubt.empty()) log_warning("input {}: {}", in_quotes(input.name), input.doubt);
  }
}

using Json = nlohmann::ordered_json;

void add_text(onnx::ModelProto& file, const std::string& name, const std::string& value) {
  onnx::StringStringEntryProto& entry = *file.add_metadata_props();
  entry.set_key(name);
  entry.set_value(value);
}

Json versions_of(const onnx::ModelProto& file) {
  Json versions{{"lockstep", file.producer_version()}};
  for (const onnx::OperatorSetIdProto& set : file.opset_import()) {
    versions[set.domain().empty() ? "ai.onnx" : set.domain()] = set.version();
  }
  return versions;
}

void add_table(onnx::ModelProto& file, const ModelToExport& exported) {
  Json columns = Json::array();
  for (const ColumnInput& input : column_inputs(*exported.schema)) {
    columns.push_back({{"name", input.name}, {"type", to_string(input.type)}, {"value", input.help}});
  }
  add_text(file, "columns", columns.dump());
  const AnswerNames names = answer_names(exported);
  add_text(file, "targets", Json(names.targets).dump());
  if (!names.classes.empty()) add_text(file, "classes", Json(names.classes).dump());
  add_text(file, "outputs", Json(names.outputs).dump());
}

}  // namespace

void write_onnx(const ModelToExport& exported, OutputFile& output) {
  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(LOCKSTEP_VERSION);
  file.add_opset_import()->set_version(kOpset);
  file.mutable_graph()->set_name("lockstep");
  OnnxGraph graph(*file.mutable_graph());
  if (exported.schema != nullptr) {
    onnx::OperatorSetIdProto& operations = *file.add_opset_import();
    operations.set_domain(kOnnxMlDomain);
    operations.set_version(kMlOpset);
    log_inputs(*exported.schema);
  }
  add_graph(graph, exported);
  add_metadata(file, exported);
  refuse_large(file, *exported.store.layout);
  for (const ParamInfo& param : exported.store.layout->params) {
    graph.add_tensor(param.name, param.shape, part(exported.store.values, param.range));
  }
  output.write(file.SerializeAsString());
}

void add_metadata(onnx::ModelProto& file, const ModelToExport& exported) {
  add_text(file, "versions", versions_of(file).dump());
  for (const auto& [name, value] : exported.facts) add_text(file, name, value);
  if (exported.schema != nullptr) add_table(file, exported);
}

}  // namespace lockstep
