// The single predictions behind the numbers of an evaluation, as far as a page about a run shows them. They
// are the same on any number of ranks.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/target_fit.h"
#include "lockstep/train/evaluation/threshold_curve.h"
#include "lockstep/train/evaluation/worst_records.h"

namespace lockstep {

/// One of the worst records, with what the files have of it.
struct ShownRecord {
  WorstRecord record;
  Index position = 0;                   ///< number in the files, from 0 on
  std::string file = {};                ///< path of its file; "" for data that are computed
  std::vector<Scalar> pixels = {};      ///< of an image; else empty
  std::vector<std::string> cells = {};  ///< values of the columns; empty for an image
};

struct EvaluationDetails {
  Split split = Split::kTest;
  Index samples = 0;
  Shape shape = {};  ///< shape of a record
  std::vector<std::string> classes = {};
  std::vector<std::string> columns = {};  ///< names of the columns of which the worst records have cells
  std::vector<ThresholdCurve> curves = {};
  std::vector<TargetFit> fits = {};
  std::vector<ShownRecord> worst = {};  ///< the largest loss first
};

/// *Collective.* Runs the model over the set once more. The result is whole on rank 0 alone.
EvaluationDetails describe_evaluation(const EvaluationContext& context, Evaluation& evaluation,
                                      const RecordSource& source, const ModelValues& values);

}  // namespace lockstep
