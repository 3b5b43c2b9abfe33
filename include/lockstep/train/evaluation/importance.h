// Two questions about one column of the data that a trained model answers. How much worse does it get when
// the values of the column are shuffled (permutation importance; Breiman 2001, "Random forests", section 10)?
// What does it predict on average if all records have one value there (partial dependence; Friedman 2001,
// "Greedy function approximation", section 8.2)? The answers have the same bits on any number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {

struct ImportanceRequest {
  std::span<const FeatureColumn> columns;
  const Measure& measure;
  Index repeats = 5;
  std::uint64_t seed = 1;
  Scalar temperature = 1;  ///< that of a calibrated model
};

struct ColumnImportance {
  std::string name;
  std::vector<double> losses;  ///< by how much the measure got worse, in each repeat

  double mean() const;
  double deviation() const;  ///< over the repeats: divided by their number, as scikit-learn has it
};

struct Importance {
  Index samples = 0;
  double baseline = 0;                    ///< the measure of the records as they are
  std::vector<ColumnImportance> columns;  ///< the most important first
};

/// *Collective.* Evaluates the set with each column permuted in turn: every record gets the features that
/// another record of the set has there. Which one, the seed and the repeat say (as with scikit-learn, all
/// columns of a repeat share a permutation). Memory: twice the rank's share of the set. Errors: AgreedError
/// where the measure is not defined.
Importance permutation_importance(const EvaluationContext& context, const RecordSource& source, Split split,
                                  const ModelValues& values, const ImportanceRequest& request);

/// *Collective.* A feature of each record of the set, in order, on all ranks. Errors: AgreedError.
std::vector<Scalar> read_feature(const RecordSource& source, Index feature, Communicator& comm);

/// *Collective.* The mean over all records of each value of the predictions (see PredictionColumns), with the
/// features `features` as `grid` has them: a row for each of these. `scales`: see in_label_units(). On rank
/// 0; empty rows elsewhere.
std::vector<std::vector<double>> partial_dependence(const PredictionContext& context,
                                                    std::span<const LabelScale> scales,
                                                    const RecordSource& source, const ModelValues& values,
                                                    Range features, std::span<const ColumnValue> grid);

}  // namespace lockstep
