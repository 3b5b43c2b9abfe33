#include "answer.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/train/evaluation/prediction_table.h"

namespace lockstep {
namespace {

constexpr const char* kLabel = "label";
constexpr const char* kProbabilities = "probabilities";
constexpr const char* kPredictions = "predictions";

// ---- numbers ---------------------------------------------------------------------------------------------

// The labels whose targets the outputs are: y = output * range + shift, and of logarithms sign(y) (e^|y| -
// 1). `a` is y where that is the logarithm of a label, else 0.
std::string add_undone_scales(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  std::vector<Scalar> ranges;
  std::vector<Scalar> shifts;
  std::vector<Scalar> logarithms;
  for (const LabelScale& scale : exported.label_scales) {
    for (Index i = 0; i < exported.form.outputs_per_target(); ++i) {
      ranges.push_back(static_cast<Scalar>(scale.range));
      shifts.push_back(static_cast<Scalar>(scale.shift));
      logarithms.push_back(scale.logarithm ? Scalar{1} : Scalar{0});
    }
  }
  const Shape shape{{std::ssize(ranges)}};
  const std::string scaled = graph.add("Mul", {outputs, graph.add_tensor("labels.range", shape, ranges)});
  const std::string y = graph.add("Add", {scaled, graph.add_tensor("labels.shift", shape, shifts)});
  const std::string a = graph.add("Mul", {y, graph.add_tensor("labels.logarithm", shape, logarithms)});
  const std::string e = graph.add("Sub", {graph.add("Exp", {graph.add("Abs", {a})}), graph.add_number(1)});
  const std::string label = graph.add("Mul", {graph.add("Sign", {a}), e});
  return graph.add("Add", {graph.add("Sub", {y, a}), label});
}

bool has_scales(const ModelToExport& exported) {
  const OutputForm& form = exported.form;
  return form.targets == TargetKind::kValue && !form.direction && !exported.label_scales.empty();
}

OnnxValue outputs_called(const ModelToExport& exported, const char* name) {
  return {.name = name, .sample = {{exported.model.output().size()}}};
}

// ---- names of classes ------------------------------------------------------------------------------------

// The number of the class, [N]: the most probable one.
std::string add_class(OnnxGraph& graph, const std::string& outputs) {
  return graph.add("ArgMax", {outputs}, {{"axis", Index{1}}, {"keepdims", Index{0}}});
}

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
  return graph.add("Reshape", {graph.cast(reached, onnx::TensorProto::INT64), graph.add_list({-1})});
}

// For each output whether it says yes, as the position of the name in the list of all: [N] for one output,
// else [N, outputs].
std::string add_sides(OnnxGraph& graph, const std::string& outputs, Index count) {
  const std::string yes = graph.add("Greater", {outputs, graph.add_number(0)});
  const std::string sides = graph.cast(yes, onnx::TensorProto::INT64);
  if (count == 1) return graph.add("Reshape", {sides, graph.add_list({-1})});
  std::vector<Index> first;
  for (Index i = 0; i < count; ++i) first.push_back(2 * i);
  return graph.add("Add", {sides, graph.add_list(first)});
}

std::string add_class_numbers(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  if (exported.threshold) return add_class_by_threshold(graph, exported, outputs);
  if (exported.form.targets == TargetKind::kClass) return add_class(graph, outputs);
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

}  // namespace

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

void add_predictions(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  switch (exported.form.link) {
    case Link::kSoftmax:
      graph.add_output(outputs_called(exported, kProbabilities), "Softmax", {outputs}, {{"axis", Index{1}}});
      return;
    case Link::kLogit:
      graph.add_output(outputs_called(exported, kProbabilities), "Sigmoid", {outputs});
      return;
    case Link::kLog:
      graph.add_output(outputs_called(exported, kPredictions), "Exp", {outputs});
      return;
    case Link::kIdentity:
      if (!has_scales(exported)) return;
      graph.add_output(outputs_called(exported, kPredictions), "Identity",
                       {add_undone_scales(graph, exported, outputs)});
      return;
  }
}

void add_answer(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs) {
  const OutputForm& form = exported.form;
  if (form.targets != TargetKind::kValue) add_label(graph, exported, outputs);
  if (form.link == Link::kLogit && exported.model.output().size() == 1) {
    const std::string yes = graph.add("Sigmoid", {outputs});
    const std::string no = graph.add("Sub", {graph.add_number(1), yes});
    graph.add_output({.name = kProbabilities, .sample = {{2}}}, "Concat", {no, yes}, {{"axis", Index{1}}});
  } else if (form.targets == TargetKind::kValue && form.link == Link::kIdentity && !has_scales(exported)) {
    graph.add_output(outputs_called(exported, kPredictions), "Identity", {outputs});
  } else {
    add_predictions(graph, exported, outputs);
  }
}

}  // namespace lockstep
