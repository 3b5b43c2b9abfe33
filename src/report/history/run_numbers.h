// The few numbers that say how far a run is and how good it is.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/run_description.h"

namespace lockstep {

/// The accuracy where there is one, else the loss, of the validation set, of the test set or of the training.
struct ShownMeasure {
  std::string split = {};                        ///< "validation", "test" or "train"
  std::string measure = {};                      ///< "accuracy", "loss"; "" where there is neither
  const MetricsTable* table = nullptr;           ///< the lines of that split
  const MetricsTable::Column* values = nullptr;  ///< null where there is neither
  double best = 0;
  double best_step = 0;

  /// "validation accuracy", or "-".
  std::string name() const;
  double last() const;
};

/// It refers to `run`.
ShownMeasure shown_measure(const RunDescription& run);

/// The `count` ranks that wait least, for which the others wait, or all if they are fewer; in order.
std::vector<std::size_t> ranks_waiting_least(const std::vector<RankTime>& ranks, std::size_t count);

/// "1,234/4,230 (29 %)".
std::string progress_of(const RunDescription& run);

/// "3 m 05 s" for a run that goes on, else "-".
std::string time_left(const RunDescription& run);

}  // namespace lockstep
