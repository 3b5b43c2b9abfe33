#include "lockstep/data/windows/time_windows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "lockstep/base/text.h"
#include "lockstep/data/loading/load_records.h"
#include "time_axis.h"

namespace lockstep {
namespace {

// Each value without the mean of the season around it, the same on both sides.
std::vector<double> without_moving_mean(const std::vector<double>& values, Index season) {
  const Index around = season / 2 * 2;
  std::vector<double> left;
  double sum = 0;
  double known = 0;
  const auto count = [&](Index i, double sign) {
    if (std::isnan(at(values, i))) return;
    sum += sign * at(values, i);
    known += sign;
  };
  for (Index i = 0; i < std::ssize(values); ++i) {
    count(i, 1);
    if (i < around) continue;
    left.push_back(at(values, i - around / 2) - sum / known);
    count(i - around, -1);
  }
  return left;
}

// The mean over the series that are long enough, by their lengths; 0 without any that is not constant.
double autocorrelation(std::span<const std::vector<double>> series, Index season) {
  constexpr Index kTimesSeen = 3;
  double sum = 0;
  double weight = 0;
  for (const std::vector<double>& values : series) {
    if (std::ssize(values) < kTimesSeen * season) continue;
    const std::vector<double> left = without_moving_mean(values, season);
    double product = 0;
    double squares = 0;
    double squares_behind = 0;
    for (Index i = 0; i + season < std::ssize(left); ++i) {
      const double value = at(left, i);
      const double behind = at(left, i + season);
      if (std::isnan(value) || std::isnan(behind)) continue;
      product += value * behind;
      squares += value * value;
      squares_behind += behind * behind;
    }
    if (squares == 0 || squares_behind == 0) continue;
    sum += product / std::sqrt(squares * squares_behind) * static_cast<double>(values.size());
    weight += static_cast<double>(values.size());
  }
  return weight > 0 ? sum / weight : 0;
}

// The values of each label in each series.
std::vector<std::vector<double>> read_labels(const RecordSource& table, const TimeAxis& axis) {
  std::vector<double> values;
  for_each_record(table, {.anything = true}, alone(),
                  [&](std::span<const Scalar>, std::span<const Scalar> targets) {
                    values.insert(values.end(), targets.begin(), targets.end());
                  });
  std::vector<std::vector<double>> series;
  const Index labels = table.info().target_columns;
  for (Index label = 0; label < labels; ++label) {
    for (Index i = 0; i < axis.series_count(); ++i) {
      std::vector<double>& one = series.emplace_back();
      const Range positions = axis.positions_of(i);
      for (Index p = positions.begin; p < positions.end; ++p)
        one.push_back(at(values, at(axis.records, p) * labels + label));
    }
  }
  return series;
}

}  // namespace

std::vector<Season> find_seasons(std::span<const std::vector<double>> series, std::vector<Index> usual) {
  constexpr double kLowest = 0.2;
  constexpr double kClear = 0.03;
  constexpr std::size_t kLongest = 1000;
  if (usual.empty()) {
    usual.resize(kLongest);  // no series sees those that are too long
    std::iota(usual.begin(), usual.end(), 2);
  }
  std::vector<Season> found;
  for (const Index positions : usual) {
    const double here = autocorrelation(series, positions);
    const bool is_multiple = std::ranges::any_of(found, [&](const Season& other) {
      return positions % other.positions == 0 && here < other.autocorrelation + kClear;
    });
    if (here >= kLowest && !is_multiple) found.push_back({positions, here});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Season::autocorrelation);
  return found;
}

SeriesSummary summarise_series(const RecordSource& table, const WindowOptions& windows, ColumnTexts& texts) {
  const TimeAxis axis = read_time_axis(table, windows, {}, texts, alone());
  std::vector<Index> lengths;
  for (Index i = 0; i < axis.series_count(); ++i) lengths.push_back(axis.positions_of(i).size());
  std::ranges::sort(lengths);
  const std::vector<std::vector<double>> labels = read_labels(table, axis);
  Index missing = 0;
  for (const std::vector<double>& label : labels) {
    const auto is_known = [](double value) { return !std::isnan(value); };
    const auto behind = std::ranges::find_if(label.rbegin(), label.rend(), is_known);
    missing += std::count_if(behind, label.rend(), [](double value) { return std::isnan(value); });
  }
  return {.series = axis.series_count(),
          .shortest = lengths.front(),
          .median = at(lengths, std::ssize(lengths) / 2),
          .longest = lengths.back(),
          .first = axis.text(std::ranges::min(axis.times)),
          .last = axis.text(std::ranges::max(axis.times)),
          .step = axis.grid.describe(),
          .missing_labels = missing,
          .notes = axis.notes,
          .seasons = find_seasons(labels, axis.grid.seasons())};
}

}  // namespace lockstep
