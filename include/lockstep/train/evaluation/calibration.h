// Temperature scaling (Guo et al. 2017, "On calibration of modern neural networks", section 4.2): the outputs
// of a trained model are divided by one number, so that its probabilities come true as often as they say. No
// prediction changes its class. The temperature is the one with the least log loss of a set that training has
// not learned from; it has the same bits on any number of ranks and threads.
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

/// `outputs` / `temperature`, written to `scaled`, which has as many numbers or more; with a temperature of 1
/// the outputs themselves.
ConstMatrix divide_outputs(const ConstMatrix& outputs, Scalar temperature, std::span<Scalar> scaled);

/// The temperature of a set, and how much better its probabilities are with it.
struct Calibration {
  Scalar temperature = 1;
  bool found = false;      ///< false: no temperature from 0.01 to 100 is better than those beside it; it is 1
  double loss_before = 0;  ///< log loss of the outputs as they are, as the metric log_loss
  double loss_after = 0;   ///< the same with the temperature
  double ece_before = 0;   ///< as the metric ece
  double ece_after = 0;
};

/// How a set is cut: into `all` blocks of `rows` rows each, but the last, of which this rank has `local`.
struct BlockCut {
  Range local;
  Index all = 0;
  Index rows = 0;
};

/// Numbers of each row.
struct RowWidths {
  Index outputs = 0;
  Index targets = 0;
  bool weighted = false;
};

/// The outputs of a model for the local blocks of a set, with targets and weights.
class CalibrationRows {
 public:
  CalibrationRows() = default;
  CalibrationRows(const BlockCut& cut, Index rows, const RowWidths& widths);

  /// Copies a block. May be called by several threads at once.
  void keep(Index block, const MetricRows& rows);

  const BlockCut& cut() const { return cut_; }
  Index outputs() const { return widths_.outputs; }
  /// SampleWeights::sum() of a local block.
  double weight(Index block) const { return at(block_weights_, block - cut_.local.begin); }
  /// Calls visit(rows) with a local block. Their weights do not know which targets are missing.
  template <class Visit>
  void visit(Index block, const Visit& visit) const {
    const Range range = rows_of(block);
    const ConstMatrix outputs(outputs_.data() + range.begin * widths_.outputs, range.size(), widths_.outputs);
    const ConstMatrix targets(targets_.data() + range.begin * widths_.targets, range.size(), widths_.targets);
    SampleWeights weights;
    if (weights_.size() > 0) weights.values = part(weights_.span(), range);
    visit(MetricRows{.outputs = outputs, .targets = targets, .weights = weights});
  }

 private:
  Range rows_of(Index block) const;

  BlockCut cut_;
  Index rows_ = 0;
  RowWidths widths_;
  AlignedBuffer<Scalar> outputs_;
  AlignedBuffer<Scalar> targets_;
  AlignedBuffer<Scalar> weights_;  // empty: none
  std::vector<double> block_weights_;
};

/// *Collective.* The temperature for outputs that are classes or yes or no; equal on all ranks.
Calibration fit_temperature(Communicator& comm, ThreadTeam& team, TargetKind targets,
                            const CalibrationRows& rows);

// Reliability: whether what is predicted with a probability comes true as often. Predictions are put into
// bins by their probability. For outputs of yes or no, each of them, and for two classes, that is the
// probability of yes (of class 1); for more classes it is that of the predicted class (Guo et al. 2017,
// section 2).

/// Bins of equal width over [0, 1]; a probability on a border belongs to the bin below it.
inline constexpr Index kReliabilityBins = 15;

/// Numbers that are added up for each block of rows.
inline constexpr Index kReliabilitySums = 4 * kReliabilityBins;

/// One bin with at least one prediction.
struct ReliabilityBin {
  double from = 0;
  double to = 0;
  Index count = 0;       ///< predictions, whatever they weigh
  double predicted = 0;  ///< the mean probability
  double observed = 0;   ///< the share of them that came true
};

/// Adds the predictions of a block of rows to its kReliabilitySums sums. Targets: kClass or kBinary.
void collect_reliability(TargetKind targets, const MetricRows& rows, std::span<double> sums);

/// The expected calibration error: the mean of |predicted - observed| over the predictions.
double calibration_error(std::span<const double> sums);

/// The bins that are not empty, in order.
std::vector<ReliabilityBin> reliability_bins(std::span<const double> sums);

}  // namespace lockstep
