#include "lockstep/data/windows/time_windows.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numeric>
#include <set>
#include <unsupported/Eigen/FFT>

#include "lockstep/base/text.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/table/values/column_stats.h"
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

constexpr Index kTimesSeen = 3;

// The mean over the series that are long enough, by their lengths; 0 without any that is not constant.
double autocorrelation(std::span<const std::vector<double>> series, Index season) {
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

// The last changes of a series from one position to the next, less their mean and in their deviations, and
// where both values are known: 1, else 0. Empty: they are all alike.
struct Changes {
  std::vector<double> values;
  std::vector<double> known;
};

Changes changes_of(const std::vector<double>& values) {
  constexpr Index kMost = Index{1} << 17;
  Changes changes;
  NumberStats stats;
  for (Index i = std::max<Index>(1, std::ssize(values) - kMost); i < std::ssize(values); ++i) {
    const double change = at(values, i) - at(values, i - 1);
    const bool is_known = !std::isnan(change);
    changes.known.push_back(is_known ? 1 : 0);
    changes.values.push_back(is_known ? change : 0);
    if (is_known) stats.merge({.count = 1, .mean = change, .min = change, .max = change});
  }
  const double deviation = stats.deviation();
  if (!(deviation > 1e-9 * std::max(std::abs(stats.mean), std::abs(values.back())))) return {};
  for (std::size_t i = 0; i < changes.values.size(); ++i)
    changes.values[i] = changes.known[i] * (changes.values[i] - stats.mean) / deviation;
  return changes;
}

// Sums of x[i] x[i + lag] over i, for the lags from 0 on.
class Correlator {
 public:
  explicit Correlator(Index length) {
    while (size_ < 2 * length) size_ *= 2;
  }
  std::vector<double> sums(std::vector<double> values) {
    values.resize(static_cast<std::size_t>(size_));
    std::vector<std::complex<double>> spectrum;
    fft_.fwd(spectrum, values);
    for (std::complex<double>& each : spectrum) each = std::norm(each);
    fft_.inv(values, spectrum, size_);
    return values;
  }

 private:
  Eigen::FFT<double> fft_;
  Index size_ = 1;
};

// Lags whose changes are alike, by more than chance and more than at the lags beside them: at most so many,
// and what divides them.
std::set<Index> lags_that_repeat(std::span<const std::vector<double>> series) {
  constexpr std::size_t kMost = 10;
  constexpr double kLowest = 0.1;
  constexpr double kDeviations = 4;  // of the correlation of what is by chance
  std::vector<double> sums;
  std::vector<double> pairs;
  for (const std::vector<double>& values : series) {
    const Changes changes = changes_of(values);
    const Index lags = std::ssize(values) / kTimesSeen + 2;  // one more than is seen three times
    if (std::ssize(changes.values) < 2 * kTimesSeen) continue;
    if (std::ssize(sums) < lags) {
      sums.resize(static_cast<std::size_t>(lags));
      pairs.resize(static_cast<std::size_t>(lags));
    }
    Correlator correlator(std::ssize(changes.values));
    const std::vector<double> products = correlator.sums(changes.values);
    const std::vector<double> both = correlator.sums(changes.known);
    for (Index lag = 0; lag < lags; ++lag) {
      at(sums, lag) += at(products, lag);
      at(pairs, lag) += at(both, lag);
    }
  }
  const auto correlation = [&](Index lag) { return at(sums, lag) / std::max(at(pairs, lag), 1.0); };
  const auto repeats = [&](Index lag) {
    return correlation(lag) > std::max(kLowest, kDeviations / std::sqrt(std::max(at(pairs, lag), 1.0)));
  };
  std::vector<Index> highest;
  for (Index lag = 2; lag + 1 < std::ssize(sums); ++lag) {
    if (repeats(lag) && correlation(lag) > correlation(lag - 1) && correlation(lag) >= correlation(lag + 1))
      highest.push_back(lag);
  }
  std::ranges::stable_sort(highest, std::greater<>(), correlation);
  highest.resize(std::min(highest.size(), kMost));
  std::set<Index> found;
  for (const Index lag : highest) {
    for (Index part = 1; part <= lag / 2; ++part) {
      if (lag % part == 0 && repeats(lag / part)) found.insert(lag / part);
    }
  }
  return found;
}

// Their mean absolute difference from their mean; 0 of none.
double spread(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double sum = 0;
  for (const double value : values) sum += std::abs(value - mean);
  return sum / count;
}

// The mean absolute error of repeating the value so many positions before and its usual change since, over
// the series that see `longest` positions three times, each in units of its spread.
double error_of_repeating(std::span<const std::vector<double>> series, Index positions, Index longest) {
  double sum = 0;
  double weight = 0;
  for (const std::vector<double>& values : series) {
    if (std::ssize(values) < kTimesSeen * longest) continue;
    std::vector<double> known;
    std::vector<double> changes;
    for (Index i = 0; i < std::ssize(values); ++i) {
      if (!std::isnan(at(values, i))) known.push_back(at(values, i));
      const double change = i < positions ? std::nan("") : at(values, i) - at(values, i - positions);
      if (!std::isnan(change)) changes.push_back(change);
    }
    const double unit = spread(known);
    if (unit == 0 || changes.empty()) continue;
    sum += spread(changes) / unit * static_cast<double>(known.size());
    weight += static_cast<double>(known.size());
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

std::vector<Season> find_seasons(std::span<const std::vector<double>> series,
                                 const std::vector<Index>& usual) {
  constexpr double kLowest = 0.2;
  constexpr double kClear = 0.1;     // share of the error of a part of the season
  constexpr double kDeviations = 3;  // of that share by chance, where it is of few values
  std::set<Index> likely = lags_that_repeat(series);
  likely.insert(usual.begin(), usual.end());
  std::vector<Season> found;
  for (const Index positions : likely) {
    const double here = autocorrelation(series, positions);
    if (here < kLowest) continue;
    const Season season{positions, here, error_of_repeating(series, positions, positions)};
    double pairs = 1;
    for (const std::vector<double>& values : series) {
      if (std::ssize(values) >= kTimesSeen * positions)
        pairs += static_cast<double>(std::ssize(values) - positions);
    }
    const double share = 1 - std::max(kClear, kDeviations / std::sqrt(pairs));
    const bool is_multiple = std::ranges::any_of(found, [&](const Season& other) {
      return positions % other.positions == 0 &&
             season.error >= share * error_of_repeating(series, other.positions, positions);
    });
    if (!is_multiple) found.push_back(season);
  }
  std::ranges::stable_sort(found, std::less<>(), &Season::error);
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
