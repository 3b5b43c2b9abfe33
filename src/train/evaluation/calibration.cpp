// With b = 1 / temperature, the log loss of a sample is convex in b: its slope is the mean of the outputs
// under the probabilities that they give, less that under the targets, and its curvature their variance. So
// Newton's method inside a bracket finds the one b at which the slopes of all samples add up to 0. Slopes and
// curvatures are added up in double, along the fixed tree over the blocks of the set.
#include "lockstep/train/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "lockstep/distributed/local_gradients.h"
#include "lockstep/math/elementary.h"
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
  Fit(Communicator& comm, ThreadTeam& team, TargetKind targets, const KeptBlocks& kept)
      : comm_(comm),
        team_(team),
        targets_(targets),
        kept_(kept),
        metrics_(kMeasured, OutputForm(targets), kept.outputs) {
    Index largest = 0;
    for (const KeptBlock& block : kept.blocks) largest = std::max(largest, block.rows().outputs.size());
    for (int thread = 0; thread < team.size(); ++thread) scaled_.emplace_back(largest);
  }

  // *Collective.* Whether there are records of more than one class, or of yes and of no: of one alone the
  // probabilities can only become surer.
  bool has_classes() {
    const bool of_class = targets_ == TargetKind::kClass;
    const Index classes = of_class ? kept_.outputs : 2;
    const std::vector<double> sums =
        sum_blocks(classes, [&](int, const KeptBlock& block, std::span<double> to) {
          const MetricRows rows = block.rows();
          for (Index row = 0; row < rows.outputs.rows(); ++row) {
            for (Index i = 0; i < kept_.outputs; ++i) {
              const double share =
                  of_class ? share_of_class(rows.targets, row, i) : static_cast<double>(rows.targets(row, i));
              if (std::isnan(share)) continue;
              at(to, of_class ? i : 1) += rows.weights[row] * share;
              if (!of_class) at(to, 0) += rows.weights[row] * (1 - share);
            }
          }
        });
    return std::ranges::count_if(sums, [](double sum) { return sum > 0; }) > 1;
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
        sum_blocks(1 + metrics_.needs().sums, [&](int thread, const KeptBlock& block, std::span<double> to) {
          to[0] = block.weight();
          const MetricRows rows = block.rows();
          const ConstMatrix divided = divide_outputs(rows.outputs, temperature, at(scaled_, thread).span());
          metrics_.collect({.outputs = divided, .targets = rows.targets, .weights = rows.weights},
                           {.sums = to.subspan(1)});
        });
    return metrics_.values({.weight = sums.front(), .sums = std::span(sums).subspan(1)});
  }

 private:
  // *Collective.* The sums over all blocks of the numbers that work(thread, block, sums) gives for each.
  std::vector<double> sum_blocks(Index columns,
                                 const std::function<void(int, const KeptBlock&, std::span<double>)>& work) {
    const auto blocks = std::ssize(kept_.blocks);
    std::vector<double> sums(static_cast<std::size_t>(blocks * columns));
    team_.run([&](int thread) {
      const Range mine = split_evenly(blocks, team_.size(), thread);
      for (Index i = mine.begin; i < mine.end; ++i) {
        work(thread, at(kept_.blocks, i), part(std::span(sums), {i * columns, (i + 1) * columns}));
      }
    });
    return ordered_sums(comm_, sums, kept_.local, kept_.all, columns);
  }

  // *Collective.*
  Derivatives derivatives(double b) {
    const std::vector<double> sums = sum_blocks(2, [&](int, const KeptBlock& block, std::span<double> to) {
      const MetricRows rows = block.rows();
      for (Index row = 0; row < rows.outputs.rows(); ++row) {
        const Derivatives each =
            targets_ == TargetKind::kClass ? of_class(rows, row, b) : of_outputs(rows, row, b);
        to[0] += rows.weights[row] * each.slope;
        to[1] += rows.weights[row] * each.curvature;
      }
    });
    return {.slope = sums[0], .curvature = sums[1]};
  }

  Communicator& comm_;
  ThreadTeam& team_;
  TargetKind targets_;
  const KeptBlocks& kept_;
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

void add_to_bin(std::span<double> of_bins, double probability, double observed, double weight) {
  double* sums = of_bins.data() + bin_of(probability) * Index{kBinColumns};
  sums[kBinCount] += 1;
  sums[kBinWeight] += weight;
  sums[kBinPredicted] += weight * probability;
  sums[kBinObserved] += weight * observed;
}

// `sums`: of one set of bins, to which all outputs belong, or of one for each output.
void add_outputs(const MetricRows& rows, Index row, std::span<double> sums) {
  const bool together = std::ssize(sums) == kReliabilitySums;
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto target = static_cast<double>(rows.targets(row, i));
    if (std::isnan(target)) continue;
    const Index first = together ? 0 : i * kReliabilitySums;
    add_to_bin(part(sums, {first, first + kReliabilitySums}),
               logistic(static_cast<double>(rows.outputs(row, i))), target, rows.weights[row]);
  }
}

void add_class(const MetricRows& rows, Index row, std::span<double> sums) {
  if (rows.outputs.cols() == 2) {
    return add_to_bin(sums, second_of_two(rows.outputs, row), share_of_class(rows.targets, row, 1),
                      rows.weights[row]);
  }
  const Index guess = predicted_class(rows.outputs, row);
  const double output{rows.outputs(row, guess)};
  add_to_bin(sums, std::exp(output - log_sum_exp(rows.outputs, row)),
             share_of_class(rows.targets, row, guess), rows.weights[row]);
}

}  // namespace

ConstMatrix divide_outputs(const ConstMatrix& outputs, Scalar temperature, std::span<Scalar> scaled) {
  if (temperature == 1) return outputs;
  const auto count = static_cast<std::size_t>(outputs.size());
  std::transform(outputs.data(), outputs.data() + count, scaled.begin(),
                 [temperature](Scalar output) { return output / temperature; });
  return {scaled.data(), outputs.rows(), outputs.cols()};
}

KeptBlock::KeptBlock(Index rows, Index outputs, Index targets, bool weighted)
    : numbers_(rows * (outputs + targets + (weighted ? 1 : 0))),
      capacity_(rows),
      weights_(numbers_.span().subspan(static_cast<std::size_t>(rows * (outputs + targets)))) {}

void KeptBlock::keep(const MetricRows& rows) {
  const Index count = rows.outputs.rows();
  Scalar* const targets = numbers_.data() + capacity_ * rows.outputs.cols();
  std::ranges::copy(rows.outputs.values(), numbers_.data());
  std::ranges::copy(rows.targets.values(), targets);
  outputs_.emplace(numbers_.data(), count, rows.outputs.cols());
  targets_.emplace(targets, count, rows.targets.cols());
  weights_ = weights_.first(weights_.empty() ? 0 : static_cast<std::size_t>(count));
  std::ranges::copy(weights_.empty() ? std::span<const Scalar>() : rows.weights.values, weights_.begin());
  weight_ = rows.weights.sum(count);
}

Calibration fit_temperature(Communicator& comm, ThreadTeam& team, TargetKind targets,
                            const KeptBlocks& kept) {
  Fit fit(comm, team, targets, kept);
  Calibration calibration;
  const std::optional<double> b = fit.has_classes() ? fit.minimum() : std::nullopt;
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
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (targets == TargetKind::kBinary) {
      add_outputs(rows, row, sums);
    } else {
      add_class(rows, row, sums);
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
