// A batch of records, each with a class for each position, as rows of one position each: what all that
// measures classes takes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

class PositionRows {
 public:
  /// Takes the positions of records whose targets are there: outputs n x (positions x classes), targets n x
  /// positions. Each has the weight of its record.
  void fill(const MetricRows& records);

  /// Valid until the next fill(), and as long as the records: they are copied only where a target is missing.
  MetricRows rows() const {
    return {.outputs = *outputs_, .targets = *targets_, .weights = {.values = weights_}};
  }
  /// The number of the record that each row is a position of.
  std::span<const Index> records() const { return records_; }

 private:
  std::vector<Scalar> kept_outputs_;
  std::vector<Scalar> kept_targets_;
  std::vector<Scalar> weights_;
  std::vector<Index> records_;
  std::optional<ConstMatrix> outputs_;
  std::optional<ConstMatrix> targets_;
};

}  // namespace lockstep
