#include "lockstep/train/evaluation/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// The past and the truth of a window, which every rank has.
void fill_known(const WindowSource& source, const ForecastForm& form, ShownWindow& shown) {
  const TableWindows& windows = source.windows();
  std::vector<Scalar> features(static_cast<std::size_t>(source.info().features.size()));
  std::vector<Scalar> truth(static_cast<std::size_t>(source.info().target_columns));
  Matrix x(features.data(), 1, std::ssize(features));
  Matrix targets(truth.data(), 1, std::ssize(truth));
  source.unpack({&shown.id, 1}, {}, x, targets);
  const Index past = std::min({windows.window, 4 * windows.horizon, Index{600}});
  const Index first = shown.label * windows.horizon;
  for (Index step = -past; step < windows.horizon; ++step) {
    const Scalar value =
        step < 0 ? at(features, (shown.label + 1) * windows.window + step) : at(truth, first + step);
    (step < 0 ? shown.past : shown.truth).push_back(form.truth(first, value));
    shown.times.push_back(source.time_of(shown.id, step));
  }
  shown.low = shown.forecast = shown.high = std::vector<double>(shown.truth.size());
}

}  // namespace

double ForecastErrors::absolute() const {
  return std::accumulate(by_step.begin(), by_step.end(), 0.0) / static_cast<double>(by_step.size());
}

const NaiveForecast& ForecastErrors::best() const {
  return *std::ranges::min_element(naive, {}, &NaiveForecast::absolute);
}

std::string ForecastErrors::describe_naive(Split split, bool of_scaled_label) const {
  std::string text;
  for (const NaiveForecast& each : naive) {
    text += text.empty()
                ? fmt::format("{}: repeating {} has mean_absolute_error {:.5g} (mean_squared_error {:.5g}{})",
                              to_string(split), each.name, each.absolute, each.squared,
                              of_scaled_label ? " of the scaled label" : "")
                : fmt::format(", {} {:.5g} ({:.5g})", each.name, each.absolute, each.squared);
  }
  return text;
}

std::string ForecastErrors::describe_model(Split split) const {
  if (model_is_best())
    return fmt::format("{}: the model's mean_absolute_error {:.5g} is {:.1f} % below that of repeating {}",
                       to_string(split), absolute(), 100 * (1 - absolute() / best().absolute), best().name);
  return fmt::format(
      "{}: repeating {} has mean_absolute_error {:.5g}, and the model {:.5g}: it is no better than a "
      "forecast that needs no model",
      to_string(split), best().name, best().absolute, absolute());
}

double ForecastForm::truth(Index target, Scalar value) const {
  const auto number = static_cast<double>(value);
  return scales.empty() ? number : at(scales, target).undo(number);
}

double ForecastForm::forecast(Index target, Index level, const MetricRows& rows, Index row) const {
  const Scalar output = rows.outputs(row, target * form.outputs_per_target() + level);
  return truth(target, form.link == Link::kLog ? std::exp(output) : output);
}

void ForecastForm::add_errors(const MetricRows& rows, std::span<double> sums) const {
  for (Index row = 0; row < rows.targets.rows(); ++row) {
    for (Index target = 0; target < rows.targets.cols(); ++target) {
      at(sums, target % std::ssize(sums)) +=
          std::abs(forecast(target, form.outputs_per_target() / 2, rows, row) -
                   truth(target, rows.targets(row, target)));
    }
  }
}

std::vector<ShownWindow> choose_windows(const WindowSource& source, const ForecastForm& form) {
  constexpr std::size_t kMost = 4;
  const TableSchema schema = parse_schema(source.schema(), "the schema of the windows");
  const std::vector<std::size_t> labels = schema.targets();
  std::vector<ShownWindow> chosen;
  std::vector<std::string> series;
  for (Index id = 0; id < source.info().rows; ++id) {
    std::vector<std::string> of_window = source.series_of(id);
    if (chosen.empty() || of_window != series) {
      if (chosen.size() == (labels.size() > 1 ? 1 : kMost)) break;
      chosen.emplace_back().name = excerpt(fmt::format("{}", fmt::join(of_window, ", ")));
      series = std::move(of_window);
    }
    chosen.back().id = id;
  }
  if (labels.size() > 1) chosen.resize(std::min(labels.size(), kMost), ShownWindow{.id = chosen.front().id});
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (labels.size() > 1) chosen[i].label = static_cast<Index>(i);
    if (labels.size() > 1 || chosen[i].name.empty())
      chosen[i].name = schema.columns[at(labels, chosen[i].label)].name;
    fill_known(source, form, chosen[i]);
  }
  return chosen;
}

void add_forecasts(const ForecastForm& form, const MetricRows& rows, std::span<const Index> ids,
                   std::span<ShownWindow> windows) {
  const Index levels = form.form.outputs_per_target();
  for (ShownWindow& shown : windows) {
    const Index row = std::ranges::find(ids, shown.id) - ids.begin();
    const Index horizon = std::ssize(shown.truth);
    for (Index step = 0; step < horizon && row < std::ssize(ids); ++step) {
      const Index target = shown.label * horizon + step;
      at(shown.low, step) = form.forecast(target, 0, rows, row);
      at(shown.forecast, step) = form.forecast(target, levels / 2, rows, row);
      at(shown.high, step) = form.forecast(target, levels - 1, rows, row);
    }
  }
}

void share_forecasts(Communicator& comm, std::span<ShownWindow> windows) {
  for (ShownWindow& shown : windows) {
    for (std::vector<double>* of_all : {&shown.low, &shown.forecast, &shown.high})
      comm.all_reduce_sum(as_buffer(std::span(*of_all)));
  }
}

}  // namespace lockstep
