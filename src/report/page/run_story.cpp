#include "page_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "lockstep/base/text.h"
#include "lockstep/report/history/viewed_run.h"
#include "lockstep/report/tables/evaluation_tables.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

std::string show_measure(const PageRun& run, const std::string& name, double value) {
  std::string title = measure_title(name, positive_class(run));
  const bool has_own_capital =
      name == "auc" || name == "r2" || name == "brier" || name == "f1" || name == "mcc";
  if (title != name && !has_own_capital) title[0] = static_cast<char>(std::tolower(title[0]));
  // A loss that is no number is not undefined: the run went wrong.
  if (!std::isfinite(value) && name != "loss") return title + " undefined";
  const bool share =
      name == "accuracy" || name == "top_k_accuracy" || name == "precision" || name == "recall";
  return share ? fmt::format("{} {:.2f} %", title, 100 * value)
               : fmt::format("{} {}", title, short_number(value));
}

std::string describe_model(const PageRun& run) {
  if (run.config.empty()) return "Its config cannot be read, so this page does not know what was trained.";
  const std::string preset = run.value("model.preset");
  const std::string model = preset.empty() ? run.value("model.layers") : preset;
  const PlanRecord& plan = run.record.plan;
  const std::string data = run.value("data.train");
  const std::string& label = run.record.scaled_label;
  return fmt::format("A model \"{}\"{} was trained on {}{}, with the loss {}{} and the optimizer {}.", model,
                     plan.parameters == 0 ? "" : fmt::format(" of {}", plural(plan.parameters, "parameter")),
                     data.empty() ? "synthetic data" : data,
                     plan.rows == 0 ? "" : fmt::format(" ({})", plural(plan.rows, "record")),
                     run.value("train.loss"),
                     label.empty() ? ""
                                   : fmt::format(" of the scaled label ({}; other measures are in its own "
                                                 "units)",
                                                 label),
                     run.value("train.optimizer"));
}

std::string describe_length(const PageRun& run) {
  const PlanRecord& plan = run.record.plan;
  std::string text = fmt::format("It made {}{} steps", count_text(run.steps()),
                                 plan.steps == 0 ? "" : " of " + with_commas(plan.steps));
  if (run.record.progress.epochs > 0)
    text +=
        fmt::format(", {:.4g} epochs with {} samples", run.record.progress.epochs, count_text(run.samples()));
  if (plan.ranks > 0) text += ", on " + plural(plan.ranks, "rank");
  if (run.record.seconds > 0) {
    text += fmt::format(", in {} of training ({} samples a second)", human_seconds(run.record.seconds),
                        count_text(run.samples() / run.record.seconds));
  }
  return text + ".";
}

std::string describe_kept(const PageRun& run) {
  const KeptWeights& kept = run.record.kept;
  const DecidingFigure* best = run.record.decides();
  if (!kept.best || best == nullptr) {
    return fmt::format("Kept are the last weights, those of step {}.", with_commas(kept.step));
  }
  return fmt::format("Kept are the weights of step {}, with the best {} of the validation set.",
                     with_commas(kept.step), show_measure(run, best->measure, best->value));
}

std::string describe_figures(const PageRun& run, const std::string& begin, const EvaluationFigures& figures) {
  std::string text = fmt::format("{} after step {}:", begin, with_commas(figures.step));
  for (const auto& [name, value] : figures.values) {
    text += fmt::format(" {},", show_measure(run, name, value));
  }
  text.back() = '.';
  return text;
}

// The result, and beside it the last evaluation where it is of other weights.
void describe_evaluations(const PageRun& run, std::vector<std::string>& story) {
  for (const std::string split : {"validation", "test"}) {
    const auto kept = run.record.figures.find(split);
    if (kept == run.record.figures.end()) continue;
    story.push_back(describe_figures(run, fmt::format("On the {} set", split), kept->second));
    if (!has_other_last(run, split)) continue;
    story.push_back(describe_figures(run, "The last evaluation,", run.record.last.at(split)));
  }
}

// Things that a user may try, as "first, or second": of those whose keys, if any, the run leaves at their
// defaults.
std::string listed_untried(const PageRun& run, const std::map<std::string, std::string>& by_key) {
  std::string text;
  for (const auto& [key, words] : by_key) {
    const auto line = std::ranges::find(run.config, key, &ConfigLine::key);
    if (words.empty() || (line != run.config.end() && line->value != line->by_default)) continue;
    text += (text.empty() ? "" : ", or ") + words;
  }
  return text;
}

// By how much the loss grew from the kept weights to the last ones, as a share; NaN where that is unknown.
double loss_growth(const PageRun& run, const MetricsTable& table) {
  const MetricsTable::Column* loss = table.find("loss");
  double kept = NAN;
  for (std::size_t i = 0; loss != nullptr && i < table.rows(); ++i) {
    if (table.steps[i] <= static_cast<double>(run.record.kept.step)) kept = loss->values[i];
  }
  return loss == nullptr ? NAN : (loss->values.back() - kept) / std::abs(kept);
}

bool fits_too_closely(const PageRun& run) {
  constexpr double kMuchWorse = 0.05;
  const bool worse = std::ranges::any_of(run.metrics.evaluations, [&](const EvaluationHistory& each) {
    return each.split == "validation" && loss_growth(run, each.table) > kMuchWorse;
  });
  return worse && loss_growth(run, run.metrics.train) < 0;
}

void look_at_numbers(const PageRun& run, std::vector<std::string>& things) {
  const auto look = [&](const std::string& split, const MetricsTable& table) {
    const MetricsTable::Column* loss = table.find("loss");
    if (loss == nullptr) return;
    const auto bad = std::ranges::find_if(loss->values, [](double value) { return !std::isfinite(value); });
    if (bad == loss->values.end()) return;
    const auto row = static_cast<std::size_t>(bad - loss->values.begin());
    things.push_back(
        fmt::format("The {} loss is not a finite number (NaN or infinite), first in the line of step {}. "
                    "{} may help.",
                    split, count_text(table.steps[row]),
                    listed_untried(run, {{"", "A lower learning rate (train.lr)"},
                                         {"train.warmup", "a warm-up (train.warmup)"},
                                         {"train.clip_norm", "train.clip_norm"}})));
  };
  look("training", run.metrics.train);
  for (const EvaluationHistory& each : run.metrics.evaluations) look(each.split, each.table);
}

void look_at_kept(const PageRun& run, std::vector<std::string>& things) {
  const bool validated = std::ranges::any_of(run.metrics.evaluations,
                                             [](const auto& each) { return each.split == "validation"; });
  if (!validated && run.record.is_complete()) {
    things.emplace_back(
        "There was no validation set: nobody chose between the weights. data.validation = \"share(0.1)\" "
        "holds "
        "some records back.");
  }
  const KeptWeights& kept = run.record.kept;
  if (!run.record.is_complete() || !kept.best || run.steps() <= 0) return;
  const bool overfits = fits_too_closely(run);
  const DecidingFigure* best = run.record.decides();
  const bool perfect = best != nullptr && best->value == (smaller_is_better(best->measure) ? 0 : 1);
  if (overfits || static_cast<double>(kept.step) < 0.7 * run.steps()) {
    const std::string advice =
        listed_untried(run, {{"train.early_stopping", "train.early_stopping would end such a run"},
                             {"train.weight_decay", overfits ? "train.weight_decay may help" : ""}});
    if (advice.empty() && !overfits) return;
    things.push_back(fmt::format(
        "The validation set was best at step {} of {}, and {}.{}", with_commas(kept.step),
        count_text(run.steps()),
        overfits ? "got worse afterwards while the training loss fell: the model fits its training data too "
                   "closely after that"
                 : "no better afterwards",
        advice.empty() ? "" : " " + advice + "."));
  } else if (static_cast<double>(kept.step) >= run.steps() && !perfect) {
    things.emplace_back("The validation set was best at the last step: a longer run may be better still.");
  }
}

void look_at_time(const PageRun& run, std::vector<std::string>& things) {
  if (!run.record.is_complete()) return;
  constexpr double kNoted = 0.25;
  const auto add = [&](double share, const std::string& what) {
    if (share > kNoted) things.push_back(fmt::format("{:.0f} % of the time {}", 100 * share, what));
  };
  add(time_share(run, "waiting"), "was spent in waiting for the slowest rank: see the guide on performance.");
  add(time_share(run, "communication"),
      "went into the exchange of gradients: a larger train.global_batch or fewer ranks give the ranks more "
      "to compute between exchanges.");
  const std::string shares = listed_untried(run, {{"data.prefetch", "data.prefetch prepares them ahead"},
                                                  {"train.threads", "train.threads shares the work out"}});
  add(time_share(run, "data"),
      "was spent in waiting for samples" + (shares.empty() ? "." : fmt::format(": {}.", shares)));
  add(time_share(run, "idle"),
      "stages waited for other stages: more replicas for each group, or train.accumulate, keep them busy, "
      "and so do stages that are equally long (distribute.cut).");
}

void look_at_ranks(const PageRun& run, std::vector<std::string>& things) {
  constexpr std::size_t kMaxTold = 4;
  const RankTimes& times = run.metrics.ranks;
  const std::vector<std::size_t> slow = slow_ranks(times);
  for (const std::size_t i : std::span(slow).first(std::min(slow.size(), kMaxTold))) {
    const RankTime& rank = times.ranks[i];
    things.push_back(fmt::format(
        "Rank {} on host {} is slow ({}): its data and compute take {:.2f} times those of the fastest rank "
        "and {:.2f} times its own best, and waiting for it costs {:.1f} % of the time of all ranks.",
        i, rank.host, to_string(rank.slowness), rank.to_best, rank.to_own, 100 * times.cost(rank.delay)));
  }
}

void look_at_classes(const PageRun& run, std::vector<std::string>& things) {
  const EvaluationHistory* shown = shown_confusion(run);
  if (shown == nullptr) return;
  const std::vector<ClassScore> scores = class_scores(shown->confusion);
  std::size_t worst = scores.size();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i].recall)) continue;
    if (worst == scores.size() || scores[i].recall < scores[worst].recall) worst = i;
  }
  if (worst == scores.size()) return;
  std::vector<Index> others = shown->confusion[worst];
  others[worst] = -1;
  const auto taken = std::ranges::max_element(others);
  if (*taken <= 0) return;
  things.push_back(
      fmt::format("Class {} is recognised least: {:.1f} % of its samples in the {} set. It is most often "
                  "taken for class {} ({} of {}).",
                  class_name(run.classes, worst), 100 * scores[worst].recall, shown->split,
                  class_name(run.classes, static_cast<std::size_t>(taken - others.begin())),
                  with_commas(*taken), with_commas(scores[worst].samples)));
}

}  // namespace

std::string positive_class(const PageRun& run) {
  const EvaluationHistory* shown = shown_confusion(run);
  return shown == nullptr ? "" : positive_class_of(std::ssize(shown->confusion), run.classes);
}

std::string measure_title(const std::string& measure, const std::string& positive) {
  static const std::map<std::string, std::string> kTitles{
      {"loss", "Loss"},
      {"accuracy", "Accuracy"},
      {"lr", "Learning rate"},
      {"samples_per_second", "Throughput, in samples per second"},
      {"gradient_norm", "Norm of the gradient"},
      {"weight_norm", "Norm of the weights"},
      {"auc", "AUC"},
      {"log_loss", "Log loss"},
      {"precision", "Precision"},
      {"recall", "Recall"},
      {"r2", "R²"},
      {"mean_absolute_error", "Mean absolute error"},
      {"mean_squared_error", "Mean squared error"},
      {"root_mean_squared_error", "Root mean squared error"},
      {"mean_absolute_percentage_error", "Mean absolute percentage error"},
      {"average_precision", "Average precision"},
      {"brier", "Brier score"},
      {"ece", "Expected calibration error"},
      {"f1", "F1"},
      {"mcc", "Matthews correlation"},
      {"balanced_accuracy", "Balanced accuracy"},
      {"spearman", "Rank correlation"},
      {"top_k_accuracy", "Top-K accuracy"}};
  const auto found = kTitles.find(measure);
  const std::string of_class = name_with_class(measure, positive).substr(measure.size());
  return (found == kTitles.end() ? measure : found->second) + of_class;
}

std::vector<std::string> tell_story(const PageRun& run) {
  std::vector<std::string> story{describe_model(run), describe_length(run)};
  if (run.record.state == RunState::kStoppedEarly) {
    story.push_back(fmt::format("It ended early: {}.", run.record.reason));
  }
  describe_evaluations(run, story);
  if (run.metrics.evaluations.empty() && run.metrics.train.rows() > 0) {
    const MetricsTable::Column* loss = run.metrics.train.find("loss");
    if (loss != nullptr) {
      story.push_back(fmt::format("The training {} is all that was measured.",
                                  show_measure(run, "loss", loss->values.back())));
    }
  }
  if (run.record.is_complete()) story.push_back(describe_kept(run));
  if (run.metrics.train.rows() == 0)
    story.emplace_back("metrics.jsonl has no training line, so there are no curves of it.");
  return story;
}

std::vector<std::string> things_to_look_at(const PageRun& run) {
  std::vector<std::string> things;
  if (!run.record.is_complete())
    things.push_back(fmt::format("The run is {}: {}", run.state(), run.record.reason));
  for (const std::string& fault : run.metrics.faults) {
    if (run.record.reason.ends_with(fault)) continue;
    things.push_back(fmt::format("metrics.jsonl is damaged: {}. The other lines are shown.", fault));
  }
  look_at_numbers(run, things);
  look_at_kept(run, things);
  look_at_time(run, things);
  look_at_ranks(run, things);
  look_at_classes(run, things);
  for (const std::string& warning : run.record.warnings)
    things.push_back(fmt::format("The log warns: {}", warning));
  return things;
}

const EvaluationHistory* shown_confusion(const PageRun& run) {
  const EvaluationHistory* shown = nullptr;
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    if (each.confusion.empty()) continue;
    if (shown == nullptr || each.split == "test") shown = &each;
  }
  return shown;
}

}  // namespace lockstep
