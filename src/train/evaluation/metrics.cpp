#include "lockstep/train/evaluation/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/nn/model.h"

namespace lockstep {
namespace {

// The confusion matrix has classes^2 cells in memory and in each line of metrics.
constexpr Index kMaxConfusionClasses = 100;

// Rows and columns of a matrix for yes and no.
constexpr Index kYesNo = 2;

// Calls visit(row, what is so, what is predicted) for each row.
template <class Visit>
void visit_classes(const ConstMatrix& outputs, const ConstMatrix& targets, const Visit& visit) {
  for (Index row = 0; row < outputs.rows(); ++row) {
    visit(row, true_class(targets, row), predicted_class(outputs, row));
  }
}

// Calls visit(row, output, what is so, what is predicted) for each output of yes or no whose target is there.
template <class Visit>
void visit_yes_or_no(const ConstMatrix& outputs, const ConstMatrix& targets, const Visit& visit) {
  for (Index row = 0; row < outputs.rows(); ++row) {
    for (Index i = 0; i < outputs.cols(); ++i) {
      if (!std::isnan(targets(row, i))) visit(row, i, targets(row, i) > Scalar{0.5}, outputs(row, i) > 0);
    }
  }
}

}  // namespace

void LossSums::add(const LossSums& other) {
  weight += other.weight;
  loss += other.loss;
  correct += other.correct;
}

std::string positive_class_of(Index classes, const std::vector<std::string>& names) {
  if (classes != 2) return "";
  return names.size() == 2 ? names.back() : "1";
}

std::string EvalMetrics::counted() const {
  return plural(samples, "sample") + (positions > 0 ? ", " + plural(positions, "position") : "");
}

TargetRule target_rule(const Loss& loss, const Shape& output, std::span<const Index> lengths) {
  const OutputForm form = loss.form();
  const auto sequence = as_sequence(output);
  return {.classes = form.targets == TargetKind::kClass ? form.outputs_of_position(output.size()) : 0,
          .unit_interval = form.targets == TargetKind::kBinary,
          .non_negative = form.power >= 1,
          .positive = form.power >= 2,
          .may_miss = loss.takes_missing_targets(),
          .positions = sequence ? sequence->positions : 0,
          .lengths = lengths};
}

TargetRule target_rule(const Loss& loss, const Model& model, const Normaliser& normaliser) {
  TargetRule rule = target_rule(loss, model.output(), model.ops().back().lengths_out);
  rule.rows = rows_of_embedding(model, normaliser);
  return rule;
}

Index rows_of_embedding(const Model& model, const Normaliser& normaliser) {
  const ModelOp& first = model.ops().front();
  const std::vector<ParamInfo>& params = model.layout().params;
  const auto table = std::ranges::find(params, first.path + ".weight", &ParamInfo::name);
  const bool takes = first.name() == "embedding" && normaliser.is_identity() && table != params.end();
  return takes ? table->shape.dims.front() : 0;
}

Index true_class(const ConstMatrix& targets, Index row) {
  return class_of({targets.data() + row * targets.cols(), static_cast<std::size_t>(targets.cols())});
}

double share_of_class(const ConstMatrix& targets, Index row, Index of_class) {
  if (targets.cols() > 1) return static_cast<double>(targets(row, of_class));
  return true_class(targets, row) == of_class ? 1 : 0;
}

Index predicted_class(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  return std::max_element(first, first + outputs.cols()) - first;
}

// Several outputs of yes or no count with their mean, so that a row is one sample.
double count_correct(TargetKind kind, const ConstMatrix& outputs, const ConstMatrix& targets,
                     const SampleWeights& weights) {
  double right = 0;
  if (kind == TargetKind::kClass) {
    visit_classes(outputs, targets,
                  [&](Index row, Index truth, Index guess) { right += truth == guess ? weights[row] : 0; });
  } else if (kind == TargetKind::kBinary) {
    visit_yes_or_no(outputs, targets, [&](Index row, Index, bool truth, bool guess) {
      right += truth == guess ? weights[row] : 0;
    });
    right /= static_cast<double>(outputs.cols());
  }
  return right;
}

double count_in_top_k(const ConstMatrix& outputs, const ConstMatrix& targets, const SampleWeights& weights,
                      Index k) {
  double inside = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    const Scalar* scores = outputs.data() + row * outputs.cols();
    const Index target = true_class(targets, row);
    Index before = 0;
    for (Index other = 0; other < outputs.cols(); ++other) {
      before += scores[other] > scores[target] || (scores[other] == scores[target] && other < target) ? 1 : 0;
    }
    inside += before < k ? weights[row] : 0;
  }
  return inside;
}

Index counted_cells(TargetKind targets, Index outputs) {
  if (targets == TargetKind::kValue || outputs > kMaxConfusionClasses) return 0;
  return targets == TargetKind::kClass ? outputs * outputs : outputs * (kYesNo * kYesNo);
}

void count_cells(TargetKind targets, const MetricRows& rows, std::span<Index> cells) {
  if (cells.empty()) return;
  if (targets == TargetKind::kClass) {
    const Index classes = rows.outputs.cols();
    visit_classes(rows.outputs, rows.targets,
                  [&](Index, Index truth, Index guess) { ++at(cells, truth * classes + guess); });
  } else {
    visit_yes_or_no(rows.outputs, rows.targets, [&](Index, Index i, bool truth, bool guess) {
      ++at(cells, (i * kYesNo + (truth ? 1 : 0)) * kYesNo + (guess ? 1 : 0));
    });
  }
}

std::string describe_loss(const EvalMetrics& metrics) {
  return fmt::format("loss {:.5g}{}", metrics.loss, metrics.of_scaled_label ? " of the scaled label" : "");
}

}  // namespace lockstep
