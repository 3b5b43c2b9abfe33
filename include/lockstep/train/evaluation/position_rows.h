// A batch of records, each with targets for each position, as rows of one position each: what all that
// measures takes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

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
