#include "lockstep/train/evaluation/metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/dataset.h"

namespace lockstep {
namespace {

// The piece of `all` that begins at `first` and has `count` elements.
template <class T>
std::span<T> piece(std::span<T> all, Index first, Index count) {
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

void refuse_misfit(const MetricEntry& entry, const OutputForm& form) {
  if (is_defined(entry, form)) return;
  std::vector<std::string> fitting;
  for (const MetricEntry& other : metric_catalog()) {
    if (is_defined(other, form)) fitting.push_back(other.name);
  }
  throw ConfigError(
      "eval.metrics: '{}' is not defined for this train.loss and its targets; those that are: {}", entry.name,
      fmt::join(fitting, ", "));
}

// Both sorted. For each positive the negatives below it and those up to it: two passes side by side.
Index count_twice_above(std::span<const Scalar> positives, std::span<const Scalar> negatives) {
  Index twice = 0;
  std::size_t below = 0;
  std::size_t up_to = 0;
  for (const Scalar score : positives) {
    while (below < negatives.size() && negatives[below] < score) ++below;
    while (up_to < negatives.size() && negatives[up_to] <= score) ++up_to;
    twice += static_cast<Index>(below + up_to);
  }
  return twice;
}

// *Collective.* The scores of all ranks, sorted, on rank 0; nothing elsewhere.
ScoredSamples collect(Communicator& comm, std::span<const Scalar> scores, std::span<const Scalar> weights) {
  ScoredSamples mine;
  mine.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) mine.push_back({.score = scores[i], .weight = weights[i]});
  return gather_samples(comm, mine);
}

}  // namespace

// One line for each list in metrics/.
std::vector<MetricEntry> score_metrics();
std::vector<MetricEntry> probability_metrics();
std::vector<MetricEntry> answer_metrics();
std::vector<MetricEntry> error_metrics();
std::vector<MetricEntry> agreement_metrics();
std::vector<MetricEntry> likelihood_metrics();

std::span<const MetricEntry> metric_catalog() {
  static const std::vector<MetricEntry> kEntries = [] {
    std::vector<MetricEntry> all;
    for (const auto& list : {score_metrics(), probability_metrics(), answer_metrics(), error_metrics(),
                             agreement_metrics(), likelihood_metrics()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    std::stable_partition(all.begin(), all.end(), [](const MetricEntry& entry) { return !entry.by_name; });
    return all;
  }();
  return kEntries;
}

bool is_defined(const MetricEntry& entry, const OutputForm& form) {
  return std::ranges::find(entry.targets, form.targets) != entry.targets.end() &&
         (!entry.suits || entry.suits(form));
}

std::string name_with_class(const std::string& measure, const std::string& positive) {
  const auto entry = std::ranges::find(metric_catalog(), measure, &MetricEntry::name);
  if (positive.empty() || entry == metric_catalog().end() || !entry->of_positive) return measure;
  return fmt::format("{} of {}", measure, in_quotes(positive));
}

std::string to_string(const MetricValue& metric, const std::string& positive) {
  const std::string name = name_with_class(metric.name, positive);
  const std::string without =
      metric.left_out == 0 ? "" : fmt::format(" (without {} of 0)", plural(metric.left_out, "target"));
  if (!metric.value) return name + " undefined" + without;
  return fmt::format("{} {:.5g}{}", name, *metric.value, without);
}

MetricSet::MetricSet(std::span<const std::string> names, const OutputForm& form, Index outputs,
                     std::vector<LabelScale> scales, std::vector<double> characters)
    : scales_(form.targets == TargetKind::kValue && !form.direction ? std::move(scales)
                                                                    : std::vector<LabelScale>()),
      characters_(std::move(characters)) {
  for (const std::string& name : names) {
    const MetricEntry& entry = find_entry(metric_catalog(), "metric", name);
    refuse_misfit(entry, form);
    error_if(std::ranges::find(members_, name, &Member::name) != members_.end(),
             "eval.metrics: '{}' is named twice; name it once", name);
    add(entry, form, outputs);
  }
  if (!names.empty() || (form.targets == TargetKind::kClass && outputs > 2)) return;
  for (const MetricEntry& entry : metric_catalog()) {
    if (!entry.by_name && is_defined(entry, form)) add(entry, form, outputs);
  }
}

void MetricSet::add(const MetricEntry& entry, const OutputForm& form, Index outputs) {
  members_.push_back({.name = entry.name, .metric = entry.make(form, outputs), .first = needs_});
  const MetricNeeds more = members_.back().metric.needs;
  needs_.sums += more.sums;
  needs_.rankings += more.rankings;
  needs_.samples += more.samples;
}

std::vector<std::string> MetricSet::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

void MetricSet::collect(const MetricRows& given, const MetricParts& parts) const {
  const MetricRows rows{.outputs = given.outputs,
                        .targets = given.targets,
                        .weights = given.weights,
                        .scales = scales_,
                        .characters = characters_};
  for (const Member& member : members_) {
    const MetricNeeds needs = member.metric.needs;
    member.metric.collect(rows, {.sums = piece(parts.sums, member.first.sums, needs.sums),
                                 .scores = piece(parts.scores, member.first.rankings, needs.rankings),
                                 .samples = piece(parts.samples, member.first.samples, needs.samples)});
  }
}

std::vector<MetricValue> MetricSet::values(const MetricTotals& totals) const {
  std::vector<MetricValue> values;
  for (const Member& member : members_) {
    const MetricNeeds needs = member.metric.needs;
    const MetricTotals own{.weight = totals.weight,
                           .sums = piece(totals.sums, member.first.sums, needs.sums),
                           .rankings = piece(totals.rankings, member.first.rankings, needs.rankings),
                           .samples = piece(totals.samples, member.first.samples, needs.samples)};
    values.push_back(
        {member.name, member.metric.value(own), member.metric.left_out ? member.metric.left_out(own) : 0});
  }
  return values;
}

ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine) {
  ScoredSamples all = gather_records(comm, mine);
  std::ranges::sort(all);
  return all;
}

RankedPairs rank_pairs(Communicator& comm, Scores& scores) {
  std::ranges::sort(scores.positives);
  std::ranges::sort(scores.negatives);
  const auto mine = std::ssize(scores.negatives);
  const std::vector<Index> negatives = gather_numbers(comm, mine);

  // positives, negatives, twice_above
  Index totals[] = {std::ssize(scores.positives), mine, 0};
  std::vector<Scalar> received;
  for (int root = 0; root < comm.size(); ++root) {
    const auto count = static_cast<std::size_t>(at(negatives, root));
    if (count == 0) continue;
    received.resize(count);
    const std::span<Scalar> theirs = root == comm.rank() ? std::span(scores.negatives) : std::span(received);
    comm.broadcast(as_buffer(theirs), root);
    totals[2] += count_twice_above(scores.positives, theirs);
  }
  comm.all_reduce_sum(as_buffer(std::span(totals)));
  return {.positives = static_cast<double>(totals[0]),
          .negatives = static_cast<double>(totals[1]),
          .twice_above = static_cast<double>(totals[2])};
}

RankedPairs rank_weighted_pairs(Communicator& comm, Scores& scores) {
  const ScoredSamples positives = collect(comm, scores.positives, scores.positive_weights);
  const ScoredSamples negatives = collect(comm, scores.negatives, scores.negative_weights);
  double totals[] = {0, 0, 0};  // positives, negatives, twice_above; of rank 0
  // For each positive the weight of the negatives below it and up to it: two passes side by side.
  double below = 0;
  double up_to = 0;
  auto next_below = negatives.begin();
  auto next_up_to = negatives.begin();
  for (const ScoredSample& positive : positives) {
    for (; next_below != negatives.end() && next_below->score < positive.score; ++next_below) {
      below += static_cast<double>(next_below->weight);
    }
    for (; next_up_to != negatives.end() && next_up_to->score <= positive.score; ++next_up_to) {
      up_to += static_cast<double>(next_up_to->weight);
    }
    totals[0] += static_cast<double>(positive.weight);
    totals[2] += static_cast<double>(positive.weight) * (below + up_to);
  }
  for (const ScoredSample& negative : negatives) totals[1] += static_cast<double>(negative.weight);
  comm.broadcast(as_buffer(std::span(totals)), 0);
  return {.positives = totals[0], .negatives = totals[1], .twice_above = totals[2]};
}

void PositionRows::fill(const MetricRows& records, Index positions, std::span<const Scalar> class_weights) {
  constexpr auto kIsMissing = [](Scalar target) { return std::isnan(target); };
  const Index columns = records.targets.cols() / positions;
  const Index width = records.outputs.cols() / positions;
  const std::span<const Scalar> targets = records.targets.values();
  const bool copies = std::ranges::any_of(targets, kIsMissing);
  kept_outputs_.clear();
  kept_targets_.clear();
  weights_.clear();
  present_.clear();
  numbers_.clear();
  lacks_some_ = false;
  for (Index i = 0; i < records.targets.rows() * positions; ++i) {
    const std::span<const Scalar> own = part(targets, {i * columns, (i + 1) * columns});
    const Index missing = copies ? std::ranges::count_if(own, kIsMissing) : 0;
    if (missing == columns) continue;
    numbers_.push_back(i);
    present_.push_back(static_cast<Scalar>(columns - missing));
    lacks_some_ |= missing > 0;
    if (records.weights.given() || !class_weights.empty()) {
      weights_.push_back(static_cast<Scalar>(records.weights[i / positions]) *
                         (class_weights.empty() ? Scalar{1} : at(class_weights, class_of(own))));
    }
    if (!copies) continue;
    const Scalar* outputs = records.outputs.data() + i * width;
    kept_outputs_.insert(kept_outputs_.end(), outputs, outputs + width);
    kept_targets_.insert(kept_targets_.end(), own.begin(), own.end());
  }
  const auto rows = std::ssize(numbers_);
  outputs_.emplace(copies ? kept_outputs_.data() : records.outputs.data(), rows, width);
  targets_.emplace(copies ? kept_targets_.data() : records.targets.data(), rows, columns);
}

SampleWeights PositionRows::weights() const {
  SampleWeights weights{.values = weights_, .present = {}, .targets = targets_->cols()};
  if (lacks_some_) weights.present = present_;
  return weights;
}

}  // namespace lockstep
