// Measures of a training and its evaluations, as sums that can be added over samples, replicas and ranks;
// and what is made of the outputs of a trained model: a temperature, its reliability, its forecasts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/windows/time_windows.h"
#include "lockstep/distributed/update.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

// Temperature scaling (Guo et al. 2017, "On calibration of modern neural networks", section 4.2): the outputs
// of a trained model are divided by one number, so that its probabilities come true as often as they say. No
// prediction changes its class. The temperature is the one with the least log loss of a set that training has
// not learned from; it has the same bits on any number of ranks and threads.

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

// A model beside forecasts that need none, on windows of time, and pictures of forecast against truth.

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

// Measures.

/// Sums over samples, each times its weight.
struct LossSums {
  double weight = 0;  ///< how many samples, where they have no weights
  double loss = 0;
  double correct = 0;  ///< classes: highest output is the target; binary: outputs on the right side of 0

  static constexpr Index kColumns = 3;
  void add(const LossSums& other);
};

/// The rule that a loss sets for the targets of a model with such an output. `lengths`: ModelOp::lengths_out
/// of its last op, which outlives the rule.
TargetRule target_rule(const Loss& loss, const Shape& output, std::span<const Index> lengths = {});

/// A rule for the whole model, which outlives it, and for what records may have as its inputs.
TargetRule target_rule(const Loss& loss, const Model& model, const Normaliser& normaliser);

/// The rows of the embedding that takes records as they are, TargetRule::rows; 0: there is none.
Index rows_of_embedding(const Model& model, const Normaliser& normaliser);

/// The weight of the rows whose prediction is right, of those with several outputs the share of them that is;
/// where a target is missing, nothing is. kValue targets: 0.
double count_correct(TargetKind kind, const ConstMatrix& outputs, const ConstMatrix& targets,
                     const SampleWeights& weights);

/// The weight of the rows whose class is among the `k` highest outputs; a tie counts for the lower class.
double count_in_top_k(const ConstMatrix& outputs, const ConstMatrix& targets, const SampleWeights& weights,
                      Index k);

/// class_of() the targets of one row.
Index true_class(const ConstMatrix& targets, Index row);

/// The probability that the targets of one row, which are classes, give a class: 1 or 0 where they name one.
double share_of_class(const ConstMatrix& targets, Index row, Index of_class);

/// The class with the highest output of one row (the first of equals).
Index predicted_class(const ConstMatrix& outputs, Index row);

/// Cells for counts of samples by what is so and what is predicted; 0 where nothing is counted. See
/// EvalMetrics::confusion and answers.
Index counted_cells(TargetKind targets, Index outputs);

/// Adds a block of rows to the cells, if there are any.
void count_cells(TargetKind targets, const MetricRows& rows, std::span<Index> cells);

/// Shares of a step's time, averaged over ranks; data, compute, communication, waiting and idle are
/// together 1.
struct TimeShares {
  double data = 0;           ///< waiting for the loader, or preparing samples on the main thread
  double compute = 0;        ///< forward, optimizer, and all the rest: backward with the loss and local sums
  double forward = 0;        ///< part of compute
  double optimizer = 0;      ///< part of compute
  double communication = 0;  ///< exchange, once all ranks have arrived
  double waiting = 0;        ///< waiting for the slowest rank
  double idle = 0;           ///< waiting for another stage of the model
  /// Not of the time, but of the exchange: 1 - its seconds in a step / its seconds in those steps in which
  /// nothing left before backward was over. Only where such steps were made.
  std::optional<double> hidden = {};
};

/// Training since the last such line.
struct TrainMetrics {
  Progress progress;
  double loss = 0;
  std::optional<double> accuracy;
  double lr = 0;
  double samples_per_second = 0;
  TimeShares time;
  std::optional<UpdateStatistics> update = {};  ///< of the last step, where it was measured
};

/// The positive one of two classes, which is the second: its name, or "1" where they have none; "" for
/// another number of classes.
std::string positive_class_of(Index classes, const std::vector<std::string>& names);

/// The answers of a model of one yes or no with yes from another probability on than a half. Shares count
/// samples by their weights, and are NaN where there is nothing to share.
struct ThresholdAnswers {
  double threshold = 0;
  double accuracy = 0;
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  std::vector<Index> confusion = {};  ///< 2 x 2 as EvalMetrics::confusion, of samples that weigh something

  /// "with yes ('fraud') from a probability of 0.3 on: accuracy 0.9, precision 0.8, recall 0.6, f1 0.69".
  std::string describe(const std::string& positive) const;
};

/// One pass over the validation or test set. Where samples have weights, all but the counts of samples are
/// weighted means.
struct EvalMetrics {
  Split split = Split::kTest;
  Progress progress;
  Index samples = 0;
  Index positions = 0;  ///< with targets for each position, those that count: all is measured of them; else 0
  double loss = 0;
  std::optional<double> accuracy;
  std::optional<double> top_k_accuracy;  ///< none where k classes are all there are
  Index top_k = 0;
  Index classes = 0;               ///< 2 for a single output of yes or no; 0 where there are none
  std::vector<Index> confusion;    ///< classes x classes: row is the true class, column the predicted one;
                                   ///< samples, whatever they weigh; empty beyond 100 classes
  std::vector<Index> answers;      ///< 2 x 2 such counts for each of several outputs of yes or no
  std::vector<std::string> names;  ///< names of the classes; empty: they have none
  std::vector<ReliabilityBin> reliability;  ///< empty where predictions are no probabilities
  std::vector<MetricValue> others;          ///< values of eval.metrics
  ForecastErrors forecast = {};             ///< of windows of time
  bool of_scaled_label = false;             ///< the loss, in whose units the others are not
  /// At eval.threshold, of the model that is kept; all else of classes is at a half.
  std::optional<ThresholdAnswers> threshold = {};
  Index crossed = 0;  ///< records, or positions, whose quantiles crossed, and were sorted
  double seconds = 0;
  std::string sample = {};  ///< on rank 0 a text that the model has written, as printable_lines() has it

  /// See positive_class_of().
  std::string positive() const { return positive_class_of(classes, names); }
  /// "10,000 samples", "600 samples, 2,114 positions".
  std::string counted() const;
};

/// "loss 0.0782"; "loss 0.0782 of the scaled label".
std::string describe_loss(const EvalMetrics& metrics);

}  // namespace lockstep
