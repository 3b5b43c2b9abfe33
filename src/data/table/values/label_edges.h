// Edges of bins from the label: the thresholds of a decision tree that is fitted on one column alone
// (Gorishniy, Rubachev & Babenko 2022, "On Embeddings for Numerical Features", section 3.2.2).
#pragma once

#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/column_stats.h"

namespace lockstep {

/// A number of a column with the label of its record: a class 0, 1, ... or a number.
struct LabelledNumber {
  double number = 0;
  double label = 0;
  double weight = 1;  ///< how often the record counts
};

struct TreeRule {
  Index max_leaves = 2;
  Index leaf_records = 1;  ///< fewest records of a leaf, whatever they weigh; those of weight 0 are left out
  bool classes = false;    ///< splits lower the Gini impurity of classes; else the variance of numbers
};

/// The thresholds of the tree, increasing: fewer than max_leaves. Leaves are split in the order of what that
/// gains, the lower one first of two alike, each between two numbers, in the middle. Labels of classes are
/// whole numbers from 0 on.
std::vector<double> tree_thresholds(std::vector<LabelledNumber> records, const TreeRule& rule);

/// The labels and weights of a sample of records.
class LabelSample {
 public:
  /// `weights`: null if all records weigh 1. Labels of classes are any numbers, alike for those of a class.
  LabelSample(const ValueSample& labels, const ValueSample* weights, bool classes);

  /// The numbers of a column of the records that are in both samples, by the keys of the records.
  std::vector<LabelledNumber> join(const ValueSample& numbers) const;
  bool classes() const { return classes_; }

 private:
  std::vector<ValueSample::Kept> labels_;   // by key
  std::vector<ValueSample::Kept> weights_;  // by key; empty: all 1
  bool classes_;
};

}  // namespace lockstep
