#include "lockstep/train/plan/fit_check.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string last_layer(const FitQuestion& question) {
  return question.model.ops().back().title;
}

// "label 'species' (setosa, virginica) of 'iris.csv' has 3 classes"
std::string describe_classes(const DatasetInfo& data) {
  return fmt::format("{} of '{}' has {} class{}", data.target_text, data.name,
                     with_commas(data.target_classes), data.target_classes == 1 ? "" : "es");
}

// The file or data set that the labels come from.
const std::string& label_source(const DatasetInfo& data) {
  return data.label_file.empty() ? data.name : data.label_file;
}

void check_levels(const FitQuestion& question, Index levels) {
  const DatasetInfo& data = question.data;
  if (data.target_columns * levels == question.model.output().size()) return;
  throw ConfigError(fmt::format(
      "{} puts out {}, but '{}' has {} target{} and train.quantiles {} levels: train.loss '{}' needs {} "
      "outputs, one for each level of each target",
      last_layer(question), to_string(question.model.output()), label_source(data), data.target_columns,
      data.target_columns == 1 ? "" : "s", levels, question.loss, data.target_columns * levels));
}

void check_columns(const FitQuestion& question) {
  const Index outputs = question.model.output().size();
  const Index levels = question.form.outputs_per_target();
  const DatasetInfo& data = question.data;
  if (levels > 1) return check_levels(question, levels);
  const Index wanted = question.form.targets == TargetKind::kClass ? 1 : outputs;
  if (data.target_columns == wanted) return;
  const std::string& name = label_source(data);
  if (question.form.targets != TargetKind::kClass) {
    throw ConfigError(fmt::format(
        "{} puts out {}, so train.loss '{}' needs {} target{} per record, but '{}' has {}; change the last "
        "layer or the loss",
        last_layer(question), to_string(question.model.output()), question.loss, wanted,
        wanted == 1 ? "" : "s", name, data.target_columns));
  }
  if (question.probabilities && data.target_columns == outputs) return;
  throw ConfigError(fmt::format(
      "the labels in '{}' have {} columns, but train.loss '{}' needs one, the number of the class{}: of "
      "one-hot rows numpy.argmax(y, axis=1) makes that",
      name, data.target_columns, question.loss,
      question.probabilities ? fmt::format(", or {} with the probability of each, as many as {} puts out",
                                           outputs, last_layer(question))
                             : ""));
}

void check_classes(const FitQuestion& question) {
  const Index outputs = question.model.output().size();
  const Index classes = question.data.target_classes;
  const bool of_classes = question.form.targets == TargetKind::kClass;
  if (of_classes && outputs == 1) {
    throw ConfigError(fmt::format(
        "{} puts out 1 number, of which train.loss '{}' is always 0: give an output for each class, or for "
        "yes and no train.loss 'binary_cross_entropy'",
        last_layer(question), question.loss));
  }
  if (of_classes && classes > outputs) {
    throw ConfigError(fmt::format("{}, but {} puts out {}: train.loss '{}' needs {} outputs",
                                  describe_classes(question.data), last_layer(question), outputs,
                                  question.loss, classes));
  }
  if (!of_classes && classes > 2) {
    throw ConfigError(fmt::format(
        "{}, whose numbers mean nothing to train.loss '{}': take 'softmax_cross_entropy' and a last layer "
        "with {} outputs",
        describe_classes(question.data), question.loss, classes));
  }
}

// A loss that learns the logarithm of the mean wants the label itself.
void check_scales(const FitQuestion& question) {
  const std::string& scaled = question.data.scaled_label;
  if (question.form.link != Link::kLog || scaled.empty()) return;
  const std::string column = scaled.substr(0, scaled.rfind(": "));
  throw ConfigError(fmt::format(
      "data.columns = [\"{}\"] scales a label, but train.loss '{}' learns the logarithm of its mean, and "
      "needs the label as it is: leave that out, or write \"{}: none\"",
      scaled, question.loss, column));
}

void check_directions(const FitQuestion& question) {
  if (!question.form.direction || question.model.output().size() > 1) return;
  throw ConfigError(fmt::format(
      "{} puts out 1 number, whose direction, all that train.loss '{}' looks at, is but its sign: give a "
      "label of several columns, or take 'mean_squared_error'",
      last_layer(question), question.loss));
}

}  // namespace

void refuse_misfit(const FitQuestion& question) {
  check_classes(question);
  check_columns(question);
  check_scales(question);
  check_directions(question);
}

std::string doubt_spare_outputs(const FitQuestion& question, Index classes) {
  const Index outputs = question.model.output().size();
  if (question.form.targets != TargetKind::kClass || classes <= 0 || classes >= outputs) return "";
  return fmt::format("{} puts out {}, but '{}' has {} class{}: the other outputs are never right",
                     last_layer(question), outputs, question.data.name, with_commas(classes),
                     classes == 1 ? "" : "es");
}

std::vector<std::string> find_doubts(const FitQuestion& question, const RunPlan& plan) {
  std::vector<std::string> doubts;
  const DatasetInfo& data = question.data;
  const std::string spare = doubt_spare_outputs(question, data.target_classes);
  if (!spare.empty()) doubts.push_back(spare);
  const std::string& last = question.model.ops().back().text;
  if (question.form.link == Link::kLogit && last == "sigmoid") {
    doubts.push_back(fmt::format(
        "train.loss '{}' takes the sigmoid of the outputs itself, and {} takes it before: leave that out",
        question.loss, last_layer(question)));
  }
  if (question.form.link == Link::kLog && (last == "softplus" || last == "relu" || last == "sigmoid")) {
    doubts.push_back(fmt::format(
        "train.loss '{}' predicts e^output, which is above 0 by itself, and {} keeps it from being below 1: "
        "leave that out",
        question.loss, last_layer(question)));
  }
  if (question.form.targets == TargetKind::kValue && data.target_classes == 2) {
    doubts.push_back(fmt::format(
        "{}, which train.loss '{}' learns as the numbers 0 and 1: 'binary_cross_entropy' is made for that",
        describe_classes(data), question.loss));
  }
  if (plan.step_batch > plan.epoch_samples) {
    doubts.push_back(
        fmt::format("a step is to take {} samples, the global batch, but an epoch of '{}' has {}: each step "
                    "takes all of them",
                    with_commas(plan.step_batch), data.name, with_commas(plan.epoch_samples)));
  }
  return doubts;
}

}  // namespace lockstep
