// A model beside forecasts that need none, on windows of time, and pictures of forecast against truth.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/windows/time_windows.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

/// Mean absolute errors in the units of the labels, over the windows of a set and the labels.
struct ForecastErrors {
  std::vector<double> by_step = {};       ///< of the model at each position of the horizon; empty: not known
  std::vector<NaiveForecast> naive = {};  ///< on rank 0; none for what are no windows

  double absolute() const;            ///< of the model: the mean over the positions
  const NaiveForecast& best() const;  ///< with the least mean absolute error
  bool model_is_best() const { return absolute() < best().absolute; }
  /// "test: repeating the last value has mean_absolute_error 3.21 (mean_squared_error 0.9 of the scaled
  /// label), the value 24 positions before 2.8 (0.7)".
  std::string describe_naive(Split split, bool of_scaled_label) const;
  /// "test: the model's mean_absolute_error 2.57 is 8 % below that of repeating the last value".
  std::string describe_model(Split split) const;
};

/// Outputs as forecasts in the units of the labels. Quantiles are in order, and the middle one counts.
struct ForecastForm {
  OutputForm form;
  std::vector<LabelScale> scales = {};  ///< of the targets; empty: none
  double truth(Index target, Scalar value) const;
  double forecast(Index target, Index level, const MetricRows& rows, Index row) const;
  /// Adds the absolute errors of a block of rows to `sums`, one for each position of the horizon.
  void add_errors(const MetricRows& rows, std::span<double> sums) const;
};

/// A window that a page shows, in the units of its label.
struct ShownWindow {
  Index id = 0;
  Index label = 0;
  std::string name = {};                ///< of its series, or of its label where there are several
  std::vector<std::string> times = {};  ///< of past and horizon
  std::vector<double> past = {};        ///< at most 4 horizons, or 600 positions
  std::vector<double> truth = {};
  std::vector<double> forecast = {};
  std::vector<double> low = {};  ///< of the lowest quantile; with one output the forecast
  std::vector<double> high = {};
};

/// The last window of each of four series or, with several labels, of one for four labels. Errors: DataError.
std::vector<ShownWindow> choose_windows(const WindowSource& source, const ForecastForm& form);

/// Notes the forecasts of those of them that are among the rows. Several threads may call it at once.
void add_forecasts(const ForecastForm& form, const MetricRows& rows, std::span<const Index> ids,
                   std::span<ShownWindow> windows);
/// *Collective.* All ranks get the forecasts of each other.
void share_forecasts(Communicator& comm, std::span<ShownWindow> windows);

}  // namespace lockstep
