// A guess is a row of outputs that is the same for all records, the best of these. Its loss is what the loss
// of the run makes of it: so a guess is measured in the same way as the model, whatever the loss.
//
// A training that has not learned ends with a loss no better than the guess. Some models learn all the same:
// they classify or rank well, but are too sure of it. Those are told by their other measures, as long as the
// loss of the steps fell. The cause follows from these losses: they rose, so the rate is too high; they
// stayed, so it is too low; or it is not known.
#include "lockstep/train/evaluation/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

using Outputs = std::vector<Scalar>;

// A number and its weight.
using Weighted = std::pair<double, double>;

// The targets of a column that are there, sorted.
std::vector<Weighted> present_targets(const TargetSample& targets, Index column) {
  std::vector<Weighted> present;
  for (Index i = 0; i < targets.rows(); ++i) {
    const Scalar* const row = targets.row(i);
    if (!std::isnan(row[column])) present.emplace_back(row[column], row[targets.columns]);
  }
  std::ranges::sort(present);
  return present;
}

// A row for each position that has a target; with 0 positions those of the records.
TargetSample by_position(const TargetSample& records, Index positions) {
  if (positions == 0) return records;
  TargetSample rows{.columns = records.columns / positions};
  for (Index i = 0; i < records.rows() * positions; ++i) {
    const Scalar* const record = records.row(i / positions);
    const std::span<const Scalar> own(record + i % positions * rows.columns,
                                      static_cast<std::size_t>(rows.columns));
    if (std::ranges::all_of(own, [](Scalar target) { return std::isnan(target); })) continue;
    rows.numbers.insert(rows.numbers.end(), own.begin(), own.end());
    rows.numbers.push_back(record[records.columns]);
  }
  return rows;
}

double weight_of_all(const std::vector<Weighted>& values) {
  double weight = 0;
  for (const Weighted& value : values) weight += value.second;
  return weight;
}

double weighted_mean(const std::vector<Weighted>& values) {
  double sum = 0;
  for (const auto& [value, weight] : values) sum += weight * value;
  return values.empty() ? 0 : sum / weight_of_all(values);
}

double weighted_quantile(const std::vector<Weighted>& sorted, double level) {
  const double wanted = level * weight_of_all(sorted);
  double below = 0;
  for (const auto& [value, weight] : sorted) {
    below += weight;
    if (below >= wanted) return value;
  }
  return 0;
}

std::vector<double> class_shares(const TargetSample& targets, Index outputs) {
  std::vector<double> shares(static_cast<std::size_t>(outputs));
  double all = 0;
  for (Index i = 0; i < targets.rows(); ++i) {
    const Scalar* const row = targets.row(i);
    const auto weight = static_cast<double>(row[targets.columns]);
    all += weight;
    if (targets.columns == 1) at(shares, static_cast<Index>(row[0])) += weight;
    for (Index j = 0; targets.columns > 1 && j < outputs; ++j)
      at(shares, j) += weight * static_cast<double>(row[j]);
  }
  for (double& share : shares) share /= all;
  return shares;
}

// The output of a class or of yes with that share, where `most` is the largest share.
Scalar output_of(const OutputForm& form, double share, double most) {
  constexpr double kLeastShare = 1e-6;
  if (form.link == Link::kIdentity) return share == most ? Scalar{1} : Scalar{-1};
  const double p = std::clamp(share, kLeastShare, 1 - kLeastShare);
  return static_cast<Scalar>(form.link == Link::kLogit ? std::log(p / (1 - p)) : std::log(p));
}

// Appends the outputs of one target.
void add_outputs(const OutputForm& form, const std::vector<Weighted>& values, Outputs& row) {
  constexpr double kLeastMean = 1e-30;
  const double mean = weighted_mean(values);
  if (form.targets == TargetKind::kBinary) {
    row.push_back(output_of(form, mean, std::max(mean, 1 - mean)));
  } else if (form.link == Link::kLog) {
    row.push_back(static_cast<Scalar>(std::log(std::max(mean, kLeastMean))));
  } else if (form.quantiles.empty()) {
    row.push_back(static_cast<Scalar>(mean));
  }
  for (const double level : form.quantiles)
    row.push_back(static_cast<Scalar>(weighted_quantile(values, level)));
}

// The mean loss of a row of outputs over all targets, as an evaluation has it.
double loss_of_row(const Loss& loss, const Outputs& outputs, const TargetSample& targets) {
  double sum = 0;
  double all = 0;
  for (Index i = 0; i < targets.rows(); ++i) {
    const ConstMatrix row(targets.row(i), 1, targets.columns);
    const auto there = static_cast<Scalar>(
        std::ranges::count_if(row.values(), [](Scalar target) { return !std::isnan(target); }));
    const SampleWeights weight{
        .values = {row.data() + targets.columns, 1}, .present = {&there, 1}, .targets = targets.columns};
    sum += evaluate_weighted(loss, {outputs.data(), 1, std::ssize(outputs)}, row, weight, nullptr);
    all += weight.sum(1);
  }
  return sum / all;
}

constexpr std::size_t kFewest = 10;
constexpr Index kFewSteps = 100;
constexpr double kMoves = 1e-3;  // what matters to a weight

enum class Course { kStayed, kFell, kRose };

struct Level {
  double mean = 0;
  double variance = 0;
};

Level level_of(const std::vector<double>& losses) {
  const auto count = static_cast<double>(losses.size());
  Level level;
  for (const double loss : losses) level.mean += loss / count;
  for (const double loss : losses)
    level.variance += (loss - level.mean) * (loss - level.mean) / std::max(count - 1, 1.0);
  return level;
}

// How the losses went, as far as chance does not explain it. Most of a fall may lie in the first steps, and
// these may have been beyond all measure, too: the very first one is compared by itself.
Course course_of(const StepLosses& losses) {
  constexpr double kErrors = 4;
  constexpr double kLower = 0.01;
  constexpr double kHigher = 0.1;
  constexpr double kFarAbove = 0.5;
  const Level begin = level_of(losses.first);
  const Level end = level_of(losses.last);
  const double noise = kErrors * std::sqrt(begin.variance / static_cast<double>(losses.first.size()) +
                                           end.variance / static_cast<double>(losses.last.size()));
  const double first = losses.first.front();
  const double size = std::abs(begin.mean);
  if (end.mean - begin.mean > noise + kHigher * size || end.mean - first > kFarAbove * std::abs(first))
    return Course::kRose;
  const bool fell = begin.mean - end.mean > noise + kLower * size ||
                    first - end.mean > kErrors * std::sqrt(end.variance) + kLower * size;
  return fell ? Course::kFell : Course::kStayed;
}

// Whether another measure than the loss is far better than that of a guess.
bool is_good_otherwise(const EvalMetrics& evaluation, const Guess& guess) {
  constexpr double kFar = 0.25;  // of the way to the best
  constexpr std::array kGuessed{std::pair{"r2", 0.0}, std::pair{"spearman", 0.0}, std::pair{"auc", 0.5}};
  const auto far = [](double value, double guessed) { return value - guessed > kFar * (1 - guessed); };
  if (evaluation.accuracy && guess.accuracy && far(*evaluation.accuracy, *guess.accuracy)) return true;
  return std::ranges::any_of(evaluation.others, [&](const MetricValue& other) {
    return std::ranges::any_of(kGuessed, [&](const auto& each) {
      return other.name == each.first && other.value && far(*other.value, each.second);
    });
  });
}

std::string describe_no_better(const LearningFacts& facts, Course course) {
  constexpr double kRounding = 1e-6;
  const Guess& guess = *facts.guess;
  const bool evaluated = facts.evaluation.has_value();
  const double loss = evaluated ? facts.evaluation->loss : level_of(facts.losses.last).mean;
  if (loss < guess.loss - kRounding * std::abs(guess.loss)) return "";
  if (evaluated && course == Course::kFell && is_good_otherwise(*facts.evaluation, guess)) return "";
  return fmt::format("the {} loss ends at {:.4g}, and the best constant guess has {:.4g}",
                     evaluated ? to_string(facts.evaluation->split) : "training", loss, guess.loss);
}

std::string likely_cause(const LearningFacts& facts, Course course) {
  if (!facts.label.empty()) return facts.label;
  switch (course) {
    case Course::kRose:
      return fmt::format("the loss of the steps rose, so train.lr = {:g} is likely too high", facts.lr);
    case Course::kStayed:
      return fmt::format(
          "the loss of the steps stayed near {:.4g}, so train.lr = {:g} is likely too low, or the inputs "
          "tell "
          "nothing of the targets",
          level_of(facts.losses.first).mean, facts.lr);
    case Course::kFell:
      break;
  }
  return "the loss of the steps fell, so the training is too short, or it learned its records by heart";
}

}  // namespace

TargetSample gather_targets(Communicator& comm, const Records& records, std::span<const Index> ids,
                            const DatasetInfo& info, const Weighing& weighing, Index features) {
  std::vector<Scalar> x(static_cast<std::size_t>(features));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  std::vector<Scalar> mine;
  for (const Index id : ids) {
    Scalar weight = 1;
    Scalar present = 0;
    Matrix row(x.data(), 1, features);
    Matrix targets(labels.data(), 1, info.label_columns());
    records.gather({&id, 1}, row, targets);
    Scalar length = 0;
    Matrix counted = take_lengths(info, targets, {&length, 1});
    weigh(weighing, info, counted, {&weight, weighing.has_weights(info) ? 1U : 0U},
          {&present, weighing.has_shares() ? 1U : 0U});
    mine.insert(mine.end(), labels.begin(), labels.begin() + info.target_columns);
    mine.push_back(weight);
  }
  return {.columns = info.target_columns, .numbers = gather_records<Scalar>(comm, mine)};
}

std::optional<Guess> best_guess(const Loss& whole, Index outputs, const TargetSample& records) {
  constexpr Index kMaxOutputs = 1000;
  const Loss& loss = whole.of_position();
  const OutputForm form = loss.form();
  const TargetSample targets = by_position(records, whole.form().positions);
  if (targets.rows() == 0 || outputs > kMaxOutputs || !whole.class_weights().empty()) return std::nullopt;
  Guess guess;
  Outputs row;
  if (form.targets == TargetKind::kClass) {
    const std::vector<double> shares = class_shares(targets, outputs);
    guess.accuracy = *std::ranges::max_element(shares);
    for (const double share : shares) row.push_back(output_of(form, share, *guess.accuracy));
  }
  for (Index column = 0; form.targets != TargetKind::kClass && column < targets.columns; ++column) {
    const std::vector<Weighted> values = present_targets(targets, column);
    add_outputs(form, values, row);
    const double yes = weighted_mean(values);
    if (form.targets == TargetKind::kBinary)
      guess.accuracy =
          guess.accuracy.value_or(0) + std::max(yes, 1 - yes) / static_cast<double>(targets.columns);
  }
  guess.loss = loss_of_row(loss, row, targets);
  return std::isfinite(guess.loss) ? std::optional(guess) : std::nullopt;
}

std::string doubt_label(const OutputForm& form, const TargetSample& records,
                        std::span<const std::string> names) {
  constexpr double kFar = 100;
  constexpr double kNear = 0.01;
  if (form.targets != TargetKind::kValue || form.link != Link::kIdentity || form.direction) return "";
  const TargetSample targets = by_position(records, form.positions);
  for (Index column = 0; column < targets.columns; ++column) {
    std::vector<Weighted> values = present_targets(targets, column);
    const double mean = weighted_mean(values);
    for (auto& [value, weight] : values) value = (value - mean) * (value - mean);
    const double deviation = std::sqrt(weighted_mean(values));
    if (deviation == 0 || (std::abs(mean) < kFar && deviation < kFar && deviation > kNear)) continue;
    const bool named = column < std::ssize(names);
    return fmt::format(
        "{} is far from 1 (mean {:.2g}, deviation {:.2g}), and a model learns it late or never: {}",
        named ? "label " + in_quotes(at(names, column)) : fmt::format("target {}", column), mean, deviation,
        named ? fmt::format("columns = [\"{}: standard\"] in [data] scales it", excerpt(at(names, column)))
              : fmt::format("let the file have (target - {:.2g}) / {:.2g}", mean, deviation));
  }
  return "";
}

void StepLosses::add(double loss) {
  constexpr std::size_t kFirst = 10;
  constexpr std::size_t kLast = 50;
  if (!std::isfinite(loss)) return;
  if (first.size() < kFirst) return first.push_back(loss);
  if (last.size() == kLast) last.erase(last.begin());
  last.push_back(loss);
}

std::string doubt_learning(const LearningFacts& facts) {
  if (facts.losses.last.size() < kFewest) return "";
  const Course course = course_of(facts.losses);
  const bool too_early = facts.steps < kFewSteps && course == Course::kFell;
  std::string found = facts.guess && !too_early ? describe_no_better(facts, course) : "";
  const double begin = level_of(facts.losses.first).mean;
  const double end = level_of(facts.losses.last).mean;
  // A weight moves by about the rate in a step.
  if (found.empty() && course == Course::kStayed && facts.lr * static_cast<double>(facts.steps) < kMoves)
    found = fmt::format("the training loss stays at {:.4g}", end);
  const bool better =
      facts.evaluation && (facts.evaluation->loss < begin || facts.evaluation->accuracy == 1.0);
  // A first loss far below may be chance, where those after it are higher than the end.
  if (found.empty() && course == Course::kRose && end > begin && !better)
    found = fmt::format("the training loss ends at {:.4g}, and began with {:.4g}", end, begin);
  return found.empty() ? ""
                       : fmt::format("the model got no better: {}. Likely cause: {}", found,
                                     likely_cause(facts, course));
}

}  // namespace lockstep
