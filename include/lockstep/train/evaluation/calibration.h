// Temperature scaling (Guo et al. 2017, "On calibration of modern neural networks", section 4.2): the outputs
// of a trained model are divided by one number, so that its probabilities come true as often as they say. No
// prediction changes its class. The temperature is the one with the least log loss of a set that training has
// not learned from; it has the same bits on any number of ranks and threads.
#pragma once

#include <optional>
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

/// A copy of the outputs of a model for a block of a set, with targets and weights.
class KeptBlock {
 public:
  /// Memory for at most so many rows.
  KeptBlock(Index rows, Index outputs, Index targets, bool weighted);

  void keep(const MetricRows& rows);

  /// Their weights do not know which targets are missing.
  MetricRows rows() const {
    return {.outputs = *outputs_, .targets = *targets_, .weights = {.values = weights_}};
  }
  /// SampleWeights::sum() of the rows as they were given.
  double weight() const { return weight_; }

 private:
  AlignedBuffer<Scalar> numbers_;  // outputs, targets, weights
  Index capacity_;                 // rows
  std::optional<ConstMatrix> outputs_;
  std::optional<ConstMatrix> targets_;
  std::span<Scalar> weights_;  // empty: none
  double weight_ = 0;
};

/// The blocks of this rank, of a set that is cut into `all` blocks; the last block of the set may be shorter
/// than the others.
struct KeptBlocks {
  Range local;
  Index all = 0;
  Index outputs = 0;  ///< of the model
  std::vector<KeptBlock> blocks = {};
};

/// *Collective.* The temperature for outputs that are classes or yes or no; equal on all ranks.
Calibration fit_temperature(Communicator& comm, ThreadTeam& team, TargetKind targets, const KeptBlocks& kept);

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

/// Adds the predictions of a block of rows to its kReliabilitySums sums, or to so many of each output of yes
/// or no. Targets: kClass or kBinary.
void collect_reliability(TargetKind targets, const MetricRows& rows, std::span<double> sums);

/// The expected calibration error: the mean of |predicted - observed| over the predictions; NaN without any.
double calibration_error(std::span<const double> sums);

/// The bins that are not empty, in order.
std::vector<ReliabilityBin> reliability_bins(std::span<const double> sums);

}  // namespace lockstep
