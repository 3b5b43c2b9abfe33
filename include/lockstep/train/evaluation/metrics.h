// Measures as (sum, count), so that it can be added over samples, replicas and ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/distributed/update.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/calibration.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/window_figures.h"

namespace lockstep {

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
