// A measure of a model beside its loss: AUC, recall, R2. It defines what it collects of each block of rows;
// the evaluation adds that up over blocks, threads and ranks, and the metric makes its value of the totals.
// No metric sees a rank, and what is added goes along the fixed tree: so a value has the same bits on any
// number of ranks. A sample counts as often as its weight says, as sample_weight of scikit-learn.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"

namespace lockstep {

// Samples of all ranks, for metrics that have to look at all of them together: in one order, which is the
// same however they are spread over ranks.

/// A sample with its output. None of the numbers is NaN.
struct ScoredSample {
  Scalar score = 0;
  Scalar target = 0;
  Scalar weight = 1;
  auto operator<=>(const ScoredSample&) const = default;
};

using ScoredSamples = std::vector<ScoredSample>;

/// *Collective, blocking.* On rank 0 the samples of all ranks, sorted by score, target and weight; nothing
/// elsewhere. Rank 0 has to have the memory for them: 12 bytes a sample.
ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine);

// How often a positive scores above a negative, over all pairs of the two: the statistic of Mann and Whitney
// (1947), which divided by the number of pairs is the area under the ROC curve (AUC). Pairs are whole
// numbers, so the result is exact, and the same however the scores are spread over ranks. Where samples have
// weights, a pair counts as often as the product of its two says (as sample_weight of scikit-learn): these
// are added in the order of the scores and, of equal ones, of the weights, which is the same on any number of
// ranks.

/// Outputs for samples that are and that are not of a class. None is NaN.
struct Scores {
  std::vector<Scalar> positives;
  std::vector<Scalar> negatives;
  std::vector<Scalar> positive_weights = {};  ///< one for each, or none at all
  std::vector<Scalar> negative_weights = {};
};

/// Sums of weights; numbers of samples and pairs, where they have none.
struct RankedPairs {
  double positives = 0;
  double negatives = 0;
  /// Over all pairs: 2 where the positive scores above the negative, 1 where they are equal. Without weights
  /// added exactly, up to 3e9 positives and as many negatives.
  double twice_above = 0;
};

/// *Collective, blocking.* Counts pairs over the scores of all ranks; sorts those given. The negatives of
/// each rank go to all others in turn: 4 bytes a score in messages, and memory for those of one rank.
RankedPairs rank_pairs(Communicator& comm, Scores& scores);

/// *Collective, blocking.* Counts pairs with weights, which every rank must then have. Scores and weights of
/// all samples go to rank 0, which has to have the memory for them: see gather_samples().
RankedPairs rank_weighted_pairs(Communicator& comm, Scores& scores);

/// How much a metric collects.
struct MetricNeeds {
  Index sums = 0;      ///< numbers for each block of rows
  Index rankings = 0;  ///< sets of scores of which each positive is compared with each negative
  Index samples = 0;   ///< sets of samples that are looked at all together
};

/// A block of rows. Shapes: those of Loss::evaluate. A target that is NaN is missing: it does not count.
struct MetricRows {
  const ConstMatrix& outputs;
  const ConstMatrix& targets;
  SampleWeights weights = {};
  std::span<const LabelScale> scales = {};  ///< of each target; empty: targets are the labels themselves
  std::span<const double> characters = {};  ///< of each class, a token of a text; empty: of each 1
};

/// Sums, scores and samples that a metric has collected so far; sums are of this block alone, and 0 at its
/// start.
struct MetricParts {
  std::span<double> sums;
  std::span<Scores> scores = {};          ///< one for each ranking
  std::span<ScoredSamples> samples = {};  ///< one for each set
};

/// MetricParts over the whole set.
struct MetricTotals {
  double weight = 0;  ///< SampleWeights::sum() over all samples
  std::span<const double> sums;
  std::span<const RankedPairs> rankings = {};
  std::span<const ScoredSamples> samples = {};  ///< sorted; of the whole set on rank 0, elsewhere empty
};

struct Metric {
  MetricNeeds needs;
  /// Adds a block of rows. May be called by several threads at once.
  std::function<void(const MetricRows& rows, const MetricParts& parts)> collect;
  /// Nothing if the metric is not defined, as the AUC of a set without positives.
  std::function<std::optional<double>(const MetricTotals& totals)> value;
  /// Targets of which it is not defined, and which its value leaves out; null: there are none.
  std::function<Index(const MetricTotals& totals)> left_out = {};
};

struct MetricEntry {
  std::string name;
  std::string help;                                        ///< one sentence, with its formula or source
  std::vector<TargetKind> targets = {TargetKind::kValue};  ///< kinds that it is defined for
  bool smaller_is_better;  ///< the smaller of two values is better; each entry says it
  Metric (*make)(const OutputForm& form, Index outputs);
  /// Whether it is defined for outputs of this form, whose kind of targets is one of `targets`; null:
  /// always.
  bool (*suits)(const OutputForm& form) = nullptr;
  /// Whether it is measured only where eval.metrics names it.
  bool by_name = false;
  /// Whether of two classes it is about the positive one alone.
  bool of_positive = false;
};

bool is_defined(const MetricEntry& entry, const OutputForm& form);

/// Whether predictions are the probabilities of classes, or of yes.
inline bool has_probabilities(const OutputForm& form) {
  return form.link == Link::kLogit || form.link == Link::kSoftmax;
}

/// Every metric there is, those that are measured by name alone last. To add one: src/README.md.
std::span<const MetricEntry> metric_catalog();

// The metrics of one run, as one: what they need together, and which part of it is whose.

struct MetricValue {
  std::string name;
  std::optional<double> value;
  Index left_out = 0;  ///< targets
};

/// "f1 of 'fraud'": a measure with the class that it is about, of two of which `positive` is the positive
/// one; its name alone where it is about both, or there are not two ("").
std::string name_with_class(const std::string& measure, const std::string& positive);

/// "auc 0.76432"; "auc undefined"; its name as name_with_class() has it.
std::string to_string(const MetricValue& metric, const std::string& positive);

class MetricSet {
 public:
  /// `names`: of eval.metrics. Without any: all that are defined for such outputs and not for naming alone,
  /// but none where there are more than two classes. Errors: ConfigError where a metric is named twice or not
  /// defined for the outputs. `scales`: those of the targets. Measures of numbers are in the units of the
  /// labels, but for those of directions. `characters`: see MetricRows.
  MetricSet(std::span<const std::string> names, const OutputForm& form, Index outputs,
            std::vector<LabelScale> scales = {}, std::vector<double> characters = {});

  /// In the order in which they are reported.
  std::vector<std::string> names() const;
  /// The needs of all metrics together.
  const MetricNeeds& needs() const { return needs_; }
  /// See Metric::collect() and Metric::value().
  void collect(const MetricRows& rows, const MetricParts& parts) const;
  std::vector<MetricValue> values(const MetricTotals& totals) const;

 private:
  struct Member {
    std::string name;
    Metric metric;
    MetricNeeds first;  // offsets at which its part begins
  };

  void add(const MetricEntry& entry, const OutputForm& form, Index outputs);

  std::vector<Member> members_;
  std::vector<LabelScale> scales_;
  std::vector<double> characters_;
  MetricNeeds needs_;
};

// A batch of records, each with targets for each position, as rows of one position each: what all that
// measures takes.

class PositionRows {
 public:
  /// Takes the positions of records that have a target: outputs n x (positions x outputs of each), targets
  /// n x (positions x targets of each). Each has the weight of its record, times that of its class where
  /// classes have weights.
  void fill(const MetricRows& records, Index positions, std::span<const Scalar> class_weights = {});

  /// Valid until the next fill(), and as long as the records: they are copied only where a target is missing.
  MetricRows rows() const { return {.outputs = *outputs_, .targets = *targets_, .weights = weights()}; }
  /// The number of each row among all positions of the records.
  std::span<const Index> numbers() const { return numbers_; }

 private:
  SampleWeights weights() const;

  std::vector<Scalar> kept_outputs_;
  std::vector<Scalar> kept_targets_;
  std::vector<Scalar> weights_;
  std::vector<Scalar> present_;  // targets of each row that are there
  std::vector<Index> numbers_;
  bool lacks_some_ = false;  // a row has some of its targets
  std::optional<ConstMatrix> outputs_;
  std::optional<ConstMatrix> targets_;
};

}  // namespace lockstep
