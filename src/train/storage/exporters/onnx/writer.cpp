// The whole way from a record to a prediction as an ONNX graph: columns of a table, normalisation, model,
// predictions.
// Format: https://github.com/onnx/onnx/blob/main/docs/IR.md
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "graph.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/nn/next_position.h"
#include "lockstep/nn/onnx_words.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr Index kIrVersion = 8;
constexpr Index kOpset = 13;
constexpr Index kMlOpset = 2;
constexpr const char* kInputName = "input";
constexpr const char* kOutputs = "outputs";
constexpr const char* kLengths = "lengths";

// Protobuf writes no file of 2 GiB or more; a tensor's name and shape come on top of its numbers.
constexpr Index kMaxBytes = std::numeric_limits<int>::max();
constexpr Index kTensorBytes = 1024;

// Fewer positions than the model has get the outputs that they have among all.
bool takes_any_positions(const ModelToExport& exported) {
  return exported.tokens && is_causal(exported.model);
}

// Gives the records, [N, dims].
std::string add_records(OnnxGraph& graph, const ModelToExport& exported) {
  const Shape& input = exported.model.input();
  if (exported.tokens) {
    graph.add_input({.name = kInputName,
                     .sample = {{input.dims.front()}},
                     .type = onnx::TensorProto::INT64,
                     .help = "numbers of tokens",
                     .any_positions = takes_any_positions(exported)});
    graph.begin_layer(kInputName);
    return graph.cast(graph.add("Unsqueeze", {kInputName, graph.add_list({2})}), onnx::TensorProto::FLOAT);
  }
  if (exported.schema == nullptr) {
    graph.add_input({.name = kInputName, .sample = input});
    return kInputName;
  }
  const std::vector<FeatureColumn> columns = feature_columns_of(*exported.schema);
  const Shape features{{columns.empty() ? 0 : columns.back().features.end}};
  error_if<DataError>(features != input,
                      "the schema of the table has features of the shape {}, but the model takes {}: is "
                      "schema.json that of this run? --format onnx_features does without it",
                      to_string(features), to_string(input));
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

// The tensors of an op of a whole model; a weight that it shares comes first.
std::vector<std::string> names_of(const OnnxGraph& graph, const Layout& layout, Index op,
                                  const std::optional<Tie>& tie = {}) {
  std::vector<std::string> names;
  for (const ParamInfo& param : layout.params) {
    const bool shared = tie && param.range == tie->weight;
    if (shared || param.layer == op) names.push_back(graph.free_name(param.name));
  }
  return names;
}

// Gives the model's output. `lengths`: an input, or "". Errors: ConfigError naming a layer for which there
// are no words.
std::string add_layers(OnnxGraph& graph, const Model& model, const std::string& input,
                       const std::string& lengths) {
  std::vector<std::string> outputs;
  for (const ModelOp& op : model.ops()) {
    const Index number = std::ssize(outputs);
    OnnxLayer layer{.in = op.in,
                    .inputs = {},
                    .tensors = names_of(graph, model.layout(), number, op.tie),
                    .state = names_of(graph, model.state_layout(), number),
                    .lengths = op.lengths_in.empty() ? "" : lengths,
                    .counted = op.lengths_in};
    for (const Index from : op.inputs) {
      layer.inputs.push_back(from == kModelInput ? input : at(outputs, from));
    }
    graph.begin_layer(op.path);
    outputs.push_back(op.layer->add_to(graph, layer));
    if (!outputs.back().empty()) continue;
    throw ConfigError("{}: the export to ONNX has no words for '{}'; export as safetensors or npz", op.title,
                      op.name());
  }
  return outputs.back();
}

// The outputs of a calibrated model are divided by its temperature.
std::string divide(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  if (exported.temperature == 1) return outputs;
  return graph.add("Div", {outputs, graph.add_number(exported.temperature)});
}

// The outputs of a record: a row or, by position, positions x outputs of each.
Shape shape_of_outputs(const ModelToExport& exported) {
  const Index count = exported.model.output().size();
  const Index positions = exported.form.positions;
  return positions > 0 ? Shape{{positions, count / positions}} : Shape{{count}};
}

std::string reshape_to_outputs(OnnxGraph& graph, const ModelToExport& exported, const std::string& values) {
  std::vector<Index> dims = shape_of_outputs(exported).dims;
  dims.insert(dims.begin(), -1);
  return graph.reshape(values, dims);
}

// The words of the answer of a model of a table.
struct AnswerNames {
  std::vector<std::string> targets;  // columns that are predicted
  // Classes by number: one list if the outputs are those of one target, else for each target no and yes;
  // empty if the answer is numbers.
  std::vector<std::vector<std::string>> classes;
  std::vector<std::string> outputs;  // one for each output: its class, its target, or "TARGET_q0.1"
};

AnswerNames answer_names(const ModelToExport& exported) {
  const Index count = exported.model.output().size();
  const OutputForm& form = exported.form;
  const std::vector<TargetLabel> labels = target_labels(*exported.schema);
  AnswerNames names;
  for (const TargetLabel& label : labels) names.targets.push_back(label.name);
  if (form.targets == TargetKind::kClass) {
    names.outputs = class_names(form, count, labels);
    names.classes = {names.outputs};
    return names;
  }
  for (const TargetLabel& label : labels) {
    if (form.targets == TargetKind::kBinary) names.classes.push_back(class_names(form, count, {&label, 1}));
    if (form.quantiles.empty()) names.outputs.push_back(label.name);
    for (const double level : form.quantiles) {
      names.outputs.push_back(fmt::format("{}_q{}", label.name, level));
    }
  }
  return names;
}

constexpr const char* kLabel = "label";
constexpr const char* kProbabilities = "probabilities";
constexpr const char* kPredictions = "predictions";

// ---- numbers ---------------------------------------------------------------------------------------------

bool has_scales(const ModelToExport& exported) {
  const OutputForm& form = exported.form;
  return form.targets == TargetKind::kValue && !form.direction && !exported.label_scales.empty();
}

// The labels whose targets the outputs are, in double: y = output * range + shift, and of logarithms sign(y)
// (e^|y| - 1). `a` is y where that is the logarithm of a label, else 0.
std::string add_undone_scales(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  std::vector<double> ranges;
  std::vector<double> shifts;
  std::vector<double> logarithms;
  for (const LabelScale& scale : exported.label_scales) {
    for (Index i = 0; i < exported.form.outputs_per_target(); ++i) {
      ranges.push_back(scale.range);
      shifts.push_back(scale.shift);
      logarithms.push_back(scale.logarithm ? 1 : 0);
    }
  }
  const std::string x = graph.cast(outputs, onnx::TensorProto::DOUBLE);
  const std::string y =
      graph.add("Add", {graph.add("Mul", {x, graph.add_doubles(ranges)}), graph.add_doubles(shifts)});
  if (std::ranges::none_of(exported.label_scales, &LabelScale::logarithm)) return y;
  const std::string a = graph.add("Mul", {y, graph.add_doubles(logarithms)});
  const std::string e = graph.add("Sub", {graph.add("Exp", {graph.add("Abs", {a})}), graph.add_double(1)});
  const std::string label = graph.add("Mul", {graph.add("Sign", {a}), e});
  return graph.add("Add", {graph.add("Sub", {y, a}), label});
}

// Adds "predictions" of values: quantiles in rising order, in the units of the labels. They are doubles only
// where single precision cannot hold a label.
void add_values(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  const Index levels = exported.form.outputs_per_target();
  OnnxValue predictions{.name = kPredictions, .sample = shape_of_outputs(exported)};
  std::string values = outputs;
  if (levels > 1) {
    const std::string sorted = graph.add_sorted(graph.reshape(values, {-1, levels}), levels);
    values = reshape_to_outputs(graph, exported, sorted);
  }
  if (has_scales(exported)) {
    if (std::ranges::any_of(exported.label_scales, [](const LabelScale& each) { return each.digits() > 0; }))
      predictions.type = onnx::TensorProto::DOUBLE;
    values = add_undone_scales(graph, exported, values);
    if (predictions.type == onnx::TensorProto::FLOAT) values = graph.cast(values, onnx::TensorProto::FLOAT);
  }
  graph.add_output(predictions, "Identity", {values});
}

OnnxValue outputs_called(const ModelToExport& exported, const char* name) {
  return {.name = name, .sample = shape_of_outputs(exported), .any_positions = takes_any_positions(exported)};
}

// ---- names of classes ------------------------------------------------------------------------------------

// The number of the class, [N], of no and yes: yes if its probability reaches the threshold. Of two outputs
// it is the sigmoid of their difference.
std::string add_class_by_threshold(OnnxGraph& graph, const ModelToExport& exported,
                                   const std::string& outputs) {
  std::string margin = outputs;
  if (exported.model.output().size() == 2) {
    const std::array<Scalar, 2> difference{-1, 1};
    margin = graph.add("Gemm", {outputs, graph.add_tensor("answer.difference", {{2, 1}}, difference)});
  }
  const std::string yes = graph.cast(graph.add("Sigmoid", {margin}), onnx::TensorProto::DOUBLE);
  const std::string reached = graph.add("GreaterOrEqual", {yes, graph.add_double(*exported.threshold)});
  return graph.reshape(graph.cast(reached, onnx::TensorProto::INT64), {-1});
}

// For each output whether it says yes, as the position of the name in the list of all: [N] for one output,
// else [N, outputs].
std::string add_sides(OnnxGraph& graph, const std::string& outputs, Index count) {
  const std::string yes = graph.add("Greater", {outputs, graph.add_number(0)});
  const std::string sides = graph.cast(yes, onnx::TensorProto::INT64);
  if (count == 1) return graph.reshape(sides, {-1});
  std::vector<Index> first;
  for (Index i = 0; i < count; ++i) first.push_back(2 * i);
  return graph.add("Add", {sides, graph.add_list(first)});
}

std::string add_class_numbers(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  if (exported.threshold) return add_class_by_threshold(graph, exported, outputs);
  if (exported.form.targets == TargetKind::kClass)  // the most probable one
    return graph.add("ArgMax", {outputs}, {{"axis", Index{1}}, {"keepdims", Index{0}}});
  return add_sides(graph, outputs, exported.model.output().size());
}

void add_label(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& names : answer_names(exported).classes) {
    all.insert(all.end(), names.begin(), names.end());
  }
  const Index count = exported.model.output().size();
  const bool one = exported.form.targets == TargetKind::kClass || count == 1;
  graph.add_output({.name = kLabel,
                    .sample = one ? Shape{} : Shape{{count}},
                    .type = onnx::TensorProto::STRING,
                    .help = "the name of the class"},
                   "Gather", {graph.add_texts(all), add_class_numbers(graph, exported, outputs)},
                   {{"axis", Index{0}}});
}

// Adds "probabilities" or "predictions" of `outputs`, float [N, shape_of_outputs()], if a prediction gives
// other numbers than these.
void add_predictions(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  switch (exported.form.link) {
    case Link::kSoftmax:
      graph.add_output(outputs_called(exported, kProbabilities), "Softmax", {outputs},
                       {{"axis", std::ssize(shape_of_outputs(exported).dims)}});
      return;
    case Link::kLogit:
      graph.add_output(outputs_called(exported, kProbabilities), "Sigmoid", {outputs});
      return;
    case Link::kLog:
      graph.add_output(outputs_called(exported, kPredictions), "Exp", {outputs});
      return;
    case Link::kIdentity:
      if (has_scales(exported) || exported.form.outputs_per_target() > 1)
        add_values(graph, exported, outputs);
      return;
  }
}

// Adds the answer of a model of a table: "label", the names of classes, with "probabilities" if there are
// any, of one yes or no those of both; or "predictions", numbers in the units of the table.
void add_answer(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  const OutputForm& form = exported.form;
  if (form.targets != TargetKind::kValue) add_label(graph, exported, outputs);
  if (form.link == Link::kLogit && exported.model.output().size() == 1) {
    const std::string yes = graph.add("Sigmoid", {outputs});
    const std::string no = graph.add("Sub", {graph.add_number(1), yes});
    graph.add_output({.name = kProbabilities, .sample = {{2}}}, "Concat", {no, yes}, {{"axis", Index{1}}});
  } else if (form.targets == TargetKind::kValue && form.link == Link::kIdentity) {
    add_values(graph, exported, outputs);
  } else {
    add_predictions(graph, exported, outputs);
  }
}

void add_graph(OnnxGraph& graph, const ModelToExport& exported) {
  const Model& model = exported.model;
  const std::string records = add_records(graph, exported);
  if (exported.lengths) {
    graph.add_input({.name = kLengths,
                     .sample = {},
                     .type = onnx::TensorProto::INT64,
                     .help = "the positions of each record that count, the first ones"});
  }
  graph.begin_layer(kInputName);
  const std::string input = onnx_ordered(graph, add_normalisation(graph, exported, records), model.input());
  const std::string output = add_layers(graph, model, input, exported.lengths ? kLengths : "");
  graph.begin_layer(kOutputs);
  const bool by_position = exported.form.positions > 0;  // the output is the sequence of these
  const std::string rows =
      divide(graph, exported, by_position ? output : onnx_rows(graph, output, model.output()));
  const OnnxValue outputs = outputs_called(exported, kOutputs);
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
      "this model takes {} as an ONNX file, which holds less than {}; export as safetensors or npz",
      human_bytes(bytes), human_bytes(kMaxBytes));
}

// A file's account of itself beside its graph, as texts by name.

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
    if (input.positions > 1) columns.back()["positions"] = input.positions;
  }
  add_text(file, "columns", columns.dump());
  const AnswerNames names = answer_names(exported);
  add_text(file, "targets", Json(names.targets).dump());
  if (!names.classes.empty()) add_text(file, "classes", Json(names.classes).dump());
  if (names.classes.size() == 1 && names.classes.front().size() == 2)
    add_text(file, "positive", Json(names.classes.front().back()).dump());
  add_text(file, "outputs", Json(names.outputs).dump());
}

// Adds, as JSON, "versions"; the facts of the run; and for a table whose columns are the inputs "columns",
// "targets", "classes", of two of them "positive", and "outputs".
void add_metadata(onnx::ModelProto& file, const ModelToExport& exported) {
  add_text(file, "versions", versions_of(file).dump());
  for (const auto& [name, value] : exported.facts) add_text(file, name, value);
  if (exported.schema != nullptr) add_table(file, exported);
}

// Inputs that are not simply what stands in the table.
void log_inputs(const TableSchema& schema) {
  for (const ColumnInput& input : column_inputs(schema)) {
    if (!input.as_is) log_info("input {}: {}", in_quotes(input.name), input.help);
    if (!input.doubt.empty()) log_warning("input {}: {}", in_quotes(input.name), input.doubt);
  }
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

}  // namespace lockstep
