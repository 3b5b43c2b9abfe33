// Whether a training has learned anything: its loss beside that of the best guess, which looks at no feature,
// and beside the losses of its first steps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// Targets of records, as a loss takes them.
struct TargetSample {
  Index columns = 0;
  std::vector<Scalar> numbers = {};  ///< a row for each record: its targets, then its weight

  Index rows() const { return std::ssize(numbers) / (columns + 1); }
  const Scalar* row(Index i) const { return numbers.data() + i * (columns + 1); }
};

/// *Collective, blocking.* On rank 0 the targets of the records `ids` of all ranks; nothing elsewhere.
/// `features`: of a record, as far as the records have them.
TargetSample gather_targets(Communicator& comm, const Records& records, std::span<const Index> ids,
                            const DatasetInfo& info, const Weighing& weighing, Index features);

/// The best outputs that are the same for all records: by the shares of the classes, the mean of a label, its
/// quantiles.
struct Guess {
  double loss = 0;
  std::optional<double> accuracy = {};  ///< of classes, and of yes or no
};

/// Nothing for no targets, and for more outputs than anyone would count.
std::optional<Guess> best_guess(const Loss& loss, Index outputs, const TargetSample& targets);

/// Names a number among the targets whose mean or deviation is far from 1, which a model learns late or
/// never, with the line that scales it; "" if there is none. `names`: the labels of a table; empty: of an
/// array.
std::string doubt_label(const OutputForm& form, const TargetSample& targets,
                        std::span<const std::string> names);

/// The losses of the first ten steps of a start, and of the last ones behind these, at most fifty.
struct StepLosses {
  std::vector<double> first = {};
  std::vector<double> last = {};

  void add(double loss);
};

/// The end of a training, as doubt_learning() judges it.
struct LearningFacts {
  std::optional<EvalMetrics> evaluation;  ///< of the kept weights; none: the losses of the steps are judged
  std::optional<Guess> guess = {};        ///< for the same records
  const StepLosses& losses;
  Index steps = 0;    ///< of all starts
  std::string label;  ///< see doubt_label()
  double lr = 0;      ///< train.lr
};

/// Names a loss that ends worse than it began, or no better than that of a guess, with the likely cause; ""
/// if the model has learned, or the training was too short to tell.
std::string doubt_learning(const LearningFacts& facts);

}  // namespace lockstep
