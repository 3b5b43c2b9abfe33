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

#include "lockstep/distributed/ordered_sums.h"
#include "lockstep/math/elementary.h"
#include "lockstep/train/evaluation/metric_set.h"
#include "lockstep/train/evaluation/metrics.h"

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

}  // namespace lockstep
