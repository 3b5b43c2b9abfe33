#include "lockstep/train/evaluation/metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// The piece of `all` that begins at `first` and has `count` elements.
template <class T>
std::span<T> piece(std::span<T> all, Index first, Index count) {
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

bool fits(const MetricEntry& entry, const OutputForm& form) {
  return std::ranges::find(entry.targets, form.targets) != entry.targets.end() &&
         (!entry.suits || entry.suits(form));
}

void refuse_misfit(const MetricEntry& entry, const OutputForm& form) {
  if (fits(entry, form)) return;
  std::vector<std::string> fitting;
  for (const MetricEntry& other : metric_catalog()) {
    if (fits(other, form)) fitting.push_back(other.name);
  }
  throw ConfigError(
      fmt::format("eval.metrics: '{}' is not defined for this train.loss and its targets; those that are: {}",
                  entry.name, fmt::join(fitting, ", ")));
}

}  // namespace

std::string to_string(const MetricValue& metric) {
  if (!metric.value) return metric.name + " undefined";
  return fmt::format("{} {:.5g}", metric.name, *metric.value);
}

MetricSet::MetricSet(std::span<const std::string> names, const OutputForm& form, Index outputs) {
  for (const std::string& name : names) {
    const MetricEntry& entry = find_entry(metric_catalog(), "metric", name);
    refuse_misfit(entry, form);
    if (std::ranges::find(members_, name, &Member::name) != members_.end()) {
      throw ConfigError(fmt::format("eval.metrics: '{}' is named twice; name it once", name));
    }
    add(entry, form, outputs);
  }
  if (!names.empty() || (form.targets == TargetKind::kClass && outputs > 2)) return;
  for (const MetricEntry& entry : metric_catalog()) {
    if (!entry.by_name && fits(entry, form)) add(entry, form, outputs);
  }
}

void MetricSet::add(const MetricEntry& entry, const OutputForm& form, Index outputs) {
  members_.push_back({.name = entry.name, .metric = entry.make(form, outputs), .first = needs_});
  const MetricNeeds more = members_.back().metric->needs();
  needs_.sums += more.sums;
  needs_.rankings += more.rankings;
  needs_.samples += more.samples;
}

std::vector<std::string> MetricSet::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

void MetricSet::collect(const MetricRows& rows, const MetricParts& parts) const {
  for (const Member& member : members_) {
    const MetricNeeds needs = member.metric->needs();
    member.metric->collect(rows, {.sums = piece(parts.sums, member.first.sums, needs.sums),
                                  .scores = piece(parts.scores, member.first.rankings, needs.rankings),
                                  .samples = piece(parts.samples, member.first.samples, needs.samples)});
  }
}

std::vector<MetricValue> MetricSet::values(const MetricTotals& totals) const {
  std::vector<MetricValue> values;
  for (const Member& member : members_) {
    const MetricNeeds needs = member.metric->needs();
    const std::optional<double> value =
        member.metric->value({.weight = totals.weight,
                              .sums = piece(totals.sums, member.first.sums, needs.sums),
                              .rankings = piece(totals.rankings, member.first.rankings, needs.rankings),
                              .samples = piece(totals.samples, member.first.samples, needs.samples)});
    values.push_back({member.name, value});
  }
  return values;
}

}  // namespace lockstep
