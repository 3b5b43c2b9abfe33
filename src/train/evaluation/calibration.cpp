// With b = 1 / temperature, the log loss of a sample is convex in b: its slope is the mean of the outputs
// under the probabilities that they give, less that under the targets, and its curvature their variance. So
// Newton's method inside a bracket finds the one b at which the slopes of all samples add up to 0. Slopes and
// curvatures are added up in double, along the fixed tree over the blocks of the set.
#include "lockstep/train/evaluation/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/distributed/local_gradients.h"
#include "lockstep/math/elementary.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "train/evaluation/metrics/rows.h"

namespace lockstep {
namespace {

// Bounds of the inverse temperature.
constexpr double kLeast = 0.01;
constexpr double kMost = 100;

// Exponentials in single precision leave b no more accuracy than this.
constexpr double kTolerance = 1e-7;
constexpr int kMaxIterations = 100;

const std::vector<std::string> kMeasured{"log_loss", "ece"};

// Derivatives of the loss of some samples by b.
struct Derivatives {
  double slope = 0;
  double curvature = 0;
};

// `b` is the inverse temperature.
Derivatives of_class(const MetricRows& rows, Index row, double b) {
  const ConstMatrix& outputs = rows.outputs;
  const auto largest = static_cast<double>(outputs(row, predicted_class(outputs, row)));
  double sum = 0;
  double first = 0;
  double second = 0;
  double target = 0;
  for (Index i = 0; i < outputs.cols(); ++i) {
    const double x = static_cast<double>(outputs(row, i)) - largest;
    const auto e = static_cast<double>(exp_nonpositive(static_cast<Scalar>(b * x)));
    sum += e;
    first += e * x;
    second += e * x * x;
    target += share_of_class(rows.targets, row, i) * x;
  }
  const double mean = first / sum;
  return {.slope = mean - target, .curvature = std::max(second / sum - mean * mean, 0.0)};
}

Derivatives of_outputs(const MetricRows& rows, Index row, double b) {
  Derivatives all;
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto target = static_cast<double>(rows.targets(row, i));
    if (std::isnan(target)) continue;
    const auto x = static_cast<double>(rows.outputs(row, i));
    const auto e = static_cast<double>(exp_nonpositive(static_cast<Scalar>(-b * std::abs(x))));
    const double less_likely = e / (1 + e);
    // Small residuals keep their digits: those of a probability near 1 are taken from its complement.
    const double residual = x < 0 ? less_likely - target : (1 - target) - less_likely;
    all.slope += x * residual;
    all.curvature += x * x * less_likely * (1 - less_likely);
  }
  return all;
}

class Fit {
 public:
  Fit(Communicator& comm, ThreadTeam& team, TargetKind targets, const CalibrationRows& rows)
      : comm_(comm),
        team_(team),
        targets_(targets),
        rows_(rows),
        metrics_(kMeasured, OutputForm(targets), rows.outputs()),
        scaled_(static_cast<std::size_t>(team.size())) {
    for (AlignedBuffer<Scalar>& each : scaled_) {
      each = AlignedBuffer<Scalar>(rows.cut().rows * rows.outputs());
    }
  }

  // *Collective.* The b with the least loss; nothing if it is not between the bounds.
  std::optional<double> minimum() {
    double low = kLeast;
    double high = kMost;
    if (!(derivatives(low).slope < 0) || !(derivatives(high).slope > 0)) return std::nullopt;
    double b = 1;
    for (int i = 0; i < kMaxIterations; ++i) {
      const Derivatives at_b = derivatives(b);
      if (at_b.slope == 0) break;
      (at_b.slope < 0 ? low : high) = b;
      double next = b - at_b.slope / at_b.curvature;
      if (!(next > low && next < high)) next = std::sqrt(low) * std::sqrt(high);
      const bool stays = std::abs(next - b) <= kTolerance * b;
      b = next;
      if (stays) break;
    }
    return b;
  }

  // *Collective.* The values of kMeasured with a temperature.
  std::vector<MetricValue> measure(Scalar temperature) {
    const std::vector<double> sums =
        sum_blocks(1 + metrics_.needs().sums, [&](int thread, Index block, std::span<double> to) {
          to[0] = rows_.weight(block);
          rows_.visit(block, [&](const MetricRows& rows) {
            const ConstMatrix divided = divide_outputs(rows.outputs, temperature, at(scaled_, thread).span());
            metrics_.collect({.outputs = divided, .targets = rows.targets, .weights = rows.weights},
                             {.sums = to.subspan(1)});
          });
        });
    return metrics_.values({.weight = sums.front(), .sums = std::span(sums).subspan(1)});
  }

 private:
  // *Collective.* The sums over all blocks of the numbers that work(thread, block, sums) gives for each.
  std::vector<double> sum_blocks(Index columns,
                                 const std::function<void(int, Index, std::span<double>)>& work) {
    const BlockCut& cut = rows_.cut();
    std::vector<double> sums(static_cast<std::size_t>(cut.local.size() * columns));
    team_.run([&](int thread) {
      const Range mine = split_evenly(cut.local.size(), team_.size(), thread);
      for (Index i = mine.begin; i < mine.end; ++i) {
        work(thread, cut.local.begin + i, part(std::span(sums), {i * columns, (i + 1) * columns}));
      }
    });
    return ordered_sums(comm_, sums, cut.local, cut.all, columns);
  }

  // *Collective.*
  Derivatives derivatives(double b) {
    const std::vector<double> sums = sum_blocks(2, [&](int, Index block, std::span<double> to) {
      rows_.visit(block, [&](const MetricRows& rows) {
        for (Index row = 0; row < rows.outputs.rows(); ++row) {
          const Derivatives each =
              targets_ == TargetKind::kClass ? of_class(rows, row, b) : of_outputs(rows, row, b);
          to[0] += rows.weights[row] * each.slope;
          to[1] += rows.weights[row] * each.curvature;
        }
      });
    });
    return {.slope = sums[0], .curvature = sums[1]};
  }

  Communicator& comm_;
  ThreadTeam& team_;
  TargetKind targets_;
  const CalibrationRows& rows_;
  MetricSet metrics_;
  std::vector<AlignedBuffer<Scalar>> scaled_;  // of each thread
};

// Sums of one bin: predictions, their weights and, times these, their probabilities and what came true.
enum ReliabilityColumn : std::size_t { kBinCount, kBinWeight, kBinPredicted, kBinObserved, kBinColumns };
static_assert(kReliabilitySums == kReliabilityBins * Index{kBinColumns});

// A probability that is not a number is in the first bin.
Index bin_of(double probability) {
  if (!(probability > 0)) return 0;
  const double bins{kReliabilityBins};
  return static_cast<Index>(std::min(std::ceil(probability * bins), bins)) - 1;
}

class Bins {
 public:
  explicit Bins(std::span<double> sums) : sums_(sums) {}

  void add(double probability, double observed, double weight) {
    double* sums = sums_.data() + bin_of(probability) * Index{kBinColumns};
    sums[kBinCount] += 1;
    sums[kBinWeight] += weight;
    sums[kBinPredicted] += weight * probability;
    sums[kBinObserved] += weight * observed;
  }

 private:
  std::span<double> sums_;
};

void add_outputs(const MetricRows& rows, Index row, Bins& bins) {
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto target = static_cast<double>(rows.targets(row, i));
    if (std::isnan(target)) continue;
    bins.add(logistic(static_cast<double>(rows.outputs(row, i))), target, rows.weights[row]);
  }
}

void add_class(const MetricRows& rows, Index row, Bins& bins) {
  if (rows.outputs.cols() == 2) {
    bins.add(second_of_two(rows.outputs, row), share_of_class(rows.targets, row, 1), rows.weights[row]);
    return;
  }
  const Index guess = predicted_class(rows.outputs, row);
  const double output{rows.outputs(row, guess)};
  bins.add(std::exp(output - log_sum_exp(rows.outputs, row)), share_of_class(rows.targets, row, guess),
           rows.weights[row]);
}

}  // namespace

ConstMatrix divide_outputs(const ConstMatrix& outputs, Scalar temperature, std::span<Scalar> scaled) {
  if (temperature == 1) return outputs;
  const auto count = static_cast<std::size_t>(outputs.size());
  std::transform(outputs.data(), outputs.data() + count, scaled.begin(),
                 [temperature](Scalar output) { return output / temperature; });
  return {scaled.data(), outputs.rows(), outputs.cols()};
}

CalibrationRows::CalibrationRows(const BlockCut& cut, Index rows, const RowWidths& widths)
    : cut_(cut),
      rows_(rows),
      widths_(widths),
      outputs_(rows * widths.outputs),
      targets_(rows * widths.targets),
      weights_(widths.weighted ? rows : 0),
      block_weights_(static_cast<std::size_t>(cut.local.size())) {}

Range CalibrationRows::rows_of(Index block) const {
  const Index begin = (block - cut_.local.begin) * cut_.rows;
  return {begin, std::min(begin + cut_.rows, rows_)};
}

void CalibrationRows::keep(Index block, const MetricRows& rows) {
  const Index begin = rows_of(block).begin;
  std::copy_n(rows.outputs.data(), rows.outputs.size(), outputs_.data() + begin * widths_.outputs);
  std::copy_n(rows.targets.data(), rows.targets.size(), targets_.data() + begin * widths_.targets);
  if (widths_.weighted) std::ranges::copy(rows.weights.values, weights_.data() + begin);
  at(block_weights_, block - cut_.local.begin) = rows.weights.sum(rows.outputs.rows());
}

Calibration fit_temperature(Communicator& comm, ThreadTeam& team, TargetKind targets,
                            const CalibrationRows& rows) {
  Fit fit(comm, team, targets, rows);
  Calibration calibration;
  const std::optional<double> b = fit.minimum();
  calibration.found = b.has_value();
  if (b) calibration.temperature = static_cast<Scalar>(1 / *b);
  const std::vector<MetricValue> before = fit.measure(1);
  const std::vector<MetricValue> after = fit.measure(calibration.temperature);
  calibration.loss_before = before[0].value.value();
  calibration.ece_before = before[1].value.value();
  calibration.loss_after = after[0].value.value();
  calibration.ece_after = after[1].value.value();
  return calibration;
}

void collect_reliability(TargetKind targets, const MetricRows& rows, std::span<double> sums) {
  Bins bins(sums);
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (targets == TargetKind::kBinary) {
      add_outputs(rows, row, bins);
    } else {
      add_class(rows, row, bins);
    }
  }
}

double calibration_error(std::span<const double> sums) {
  double weight = 0;
  double error = 0;
  for (Index bin = 0; bin < kReliabilityBins; ++bin) {
    const double* of_bin = sums.data() + bin * Index{kBinColumns};
    weight += of_bin[kBinWeight];
    error += std::abs(of_bin[kBinPredicted] - of_bin[kBinObserved]);
  }
  return error / weight;
}

std::vector<ReliabilityBin> reliability_bins(std::span<const double> sums) {
  std::vector<ReliabilityBin> bins;
  for (Index bin = 0; bin < kReliabilityBins; ++bin) {
    const double* of_bin = sums.data() + bin * Index{kBinColumns};
    if (of_bin[kBinWeight] == 0) continue;
    const double count{kReliabilityBins};
    bins.push_back({.from = static_cast<double>(bin) / count,
                    .to = static_cast<double>(bin + 1) / count,
                    .count = static_cast<Index>(of_bin[kBinCount]),
                    .predicted = of_bin[kBinPredicted] / of_bin[kBinWeight],
                    .observed = of_bin[kBinObserved] / of_bin[kBinWeight]});
  }
  return bins;
}

}  // namespace lockstep
