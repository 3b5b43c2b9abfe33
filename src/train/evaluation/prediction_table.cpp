#include "lockstep/train/evaluation/prediction_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/threshold.h"

namespace lockstep {
namespace {

using Names = std::shared_ptr<const std::vector<std::string>>;

std::vector<std::string> with_numbers(std::vector<std::string> names, Index count) {
  for (Index i = std::ssize(names); i < count; ++i) names.push_back(fmt::format("{}", i));
  return names;
}

// Names of no and yes of a target.
std::vector<std::string> names_of_answers(std::span<const TargetLabel> labels, Index target) {
  if (target >= std::ssize(labels)) return with_numbers({}, 2);
  return with_numbers(labels[static_cast<std::size_t>(target)].classes, 2);
}

std::string name_of_target(std::span<const TargetLabel> labels, Index target) {
  if (target >= std::ssize(labels)) return fmt::format("target{}", target);
  return labels[static_cast<std::size_t>(target)].name;
}

const char* prefix_of(const OutputForm& form) {
  return form.link == Link::kIdentity ? "score_" : "p_";
}

}  // namespace

std::vector<std::string> class_names(const OutputForm& form, Index outputs,
                                     std::span<const TargetLabel> labels) {
  if (form.targets == TargetKind::kBinary) return names_of_answers(labels, 0);
  std::vector<std::string> names;
  if (labels.size() == 1) {
    names = labels.front().classes;
  } else {  // each is the probability of a class
    for (const TargetLabel& label : labels) names.push_back(label.name);
  }
  return with_numbers(std::move(names), outputs);
}

void check_view(const PredictionView& view, const OutputForm& form, Index outputs) {
  const bool of_classes = form.targets != TargetKind::kValue;
  if (view.probabilities && (!of_classes || form.link == Link::kIdentity)) {
    throw ConfigError(fmt::format("--proba: the model gives {}, not probabilities: leave --proba out",
                                  of_classes ? "scores (its train.loss is a hinge loss)" : "numbers"));
  }
  if (view.top > 0 && form.targets != TargetKind::kClass) {
    throw ConfigError(
        fmt::format("--top: the model {}, so there are no most probable classes: leave --top out",
                    of_classes ? "says yes or no" : "gives numbers"));
  }
  if (view.top > outputs) {
    throw ConfigError(
        fmt::format("--top {}: the model has {} classes: give at most that many", view.top, outputs));
  }
  if (view.threshold && !has_yes(form, outputs)) {
    throw ConfigError(
        fmt::format("--threshold is the probability from which on a model says yes, but this one {}: leave "
                    "--threshold out",
                    !of_classes                    ? "gives numbers"
                    : form.link == Link::kIdentity ? "gives scores (its train.loss is a hinge loss)"
                                                   : fmt::format("has {} classes", outputs)));
  }
}

PredictionTable::PredictionTable(const OutputForm& form, Index outputs, std::span<const TargetLabel> labels,
                                 const PredictionView& view)
    : form_(form), outputs_(outputs), view_(view), ranked_(static_cast<std::size_t>(outputs)) {
  switch (form.targets) {
    case TargetKind::kClass:
      add_classes(labels);
      break;
    case TargetKind::kBinary:
      add_answers(labels);
      break;
    case TargetKind::kValue:
      add_values(labels);
      break;
  }
}

void PredictionTable::add(PredictionColumn column, Source source) {
  columns_.push_back(std::move(column));
  sources_.push_back(source);
}

// A row has the class first, then a value for each class.
void PredictionTable::add_classes(std::span<const TargetLabel> labels) {
  const auto names = std::make_shared<const std::vector<std::string>>(class_names(form_, outputs_, labels));
  const char* const prefix = prefix_of(form_);
  for (Index i = 0; i < view_.top; ++i) {
    add({.name = fmt::format("top{}", i + 1), .classes = names}, {Cell::kTopClass, i});
    add({.name = fmt::format("{}top{}", prefix, i + 1)}, {Cell::kTopValue, i});
  }
  if (view_.top > 0) return;
  if (!view_.probabilities) {
    const Source source = view_.threshold ? Source{Cell::kAbove, 2} : Source{};
    add({.name = "prediction", .classes = names}, source);
  }
  for (Index i = 0; i < outputs_; ++i)
    add({.name = fmt::format("{}{}", prefix, at(*names, i))}, {Cell::kCopy, 1 + i});
}

// A row has 0 or 1 for each target, then the probability of yes for each.
void PredictionTable::add_answers(std::span<const TargetLabel> labels) {
  const bool one = outputs_ == 1;
  for (Index i = 0; i < outputs_ && !view_.probabilities; ++i) {
    add({.name = one ? "prediction" : name_of_target(labels, i),
         .classes = std::make_shared<const std::vector<std::string>>(names_of_answers(labels, i))},
        view_.threshold ? Source{Cell::kAbove, outputs_ + i} : Source{Cell::kCopy, i});
  }
  const char* const prefix = prefix_of(form_);
  const std::vector<std::string> answers = names_of_answers(labels, 0);
  if (one && form_.link == Link::kLogit && !view_.outputs_only) {
    add({.name = fmt::format("{}{}", prefix, answers.front())}, {Cell::kComplement, 1});
  }
  for (Index i = 0; i < outputs_; ++i) {
    add({.name = fmt::format("{}{}", prefix, one ? answers.back() : name_of_target(labels, i))},
        {Cell::kCopy, outputs_ + i});
  }
}

void PredictionTable::add_values(std::span<const TargetLabel> labels) {
  const Index levels = form_.outputs_per_target();
  const bool one = outputs_ == levels;
  for (Index i = 0; i < outputs_; ++i) {
    std::string name = one ? "prediction" : name_of_target(labels, i / levels);
    if (!form_.quantiles.empty()) {
      const std::string level = fmt::format("q{}", at(form_.quantiles, i % levels));
      name = one ? level : fmt::format("{}_{}", name, level);
    }
    add({.name = std::move(name)}, {Cell::kCopy, i});
  }
}

ConstMatrix PredictionTable::convert(const ConstMatrix& rows) {
  converted_.clear();
  for (Index i = 0; i < rows.rows(); ++i) {
    const Scalar* const row = rows.data() + i * rows.cols();
    if (view_.top > 0) rank_values(row + 1);
    for (const Source& source : sources_) converted_.push_back(value_of(source, row));
  }
  return {converted_.data(), rows.rows(), std::ssize(sources_)};
}

// Equal values come in the order of their classes; what is not a number comes last.
void PredictionTable::rank_values(const Scalar* values) {
  const auto value = [values](Index output) {
    return std::isnan(values[output]) ? -std::numeric_limits<Scalar>::infinity() : values[output];
  };
  std::iota(ranked_.begin(), ranked_.end(), Index{0});
  std::partial_sort(ranked_.begin(), ranked_.begin() + view_.top, ranked_.end(),
                    [&](Index a, Index b) { return value(a) > value(b) || (value(a) == value(b) && a < b); });
}

Scalar PredictionTable::value_of(const Source& source, const Scalar* row) const {
  switch (source.cell) {
    case Cell::kCopy:
      return row[source.index];
    case Cell::kComplement:
      return 1 - row[source.index];
    case Cell::kAbove:
      return static_cast<double>(row[source.index]) >= *view_.threshold ? Scalar{1} : Scalar{0};
    case Cell::kTopClass:
      return static_cast<Scalar>(at(ranked_, source.index));
    case Cell::kTopValue:
      return row[1 + at(ranked_, source.index)];
  }
  return 0;
}

}  // namespace lockstep
