// Facts of a data set that are known before its records are read, and the rule for its targets.
#pragma once

#include <atomic>
#include <string>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Which of the three data sets of a run.
enum class Split { kTrain, kValidation, kTest };

/// "train", "validation", "test".
std::string to_string(Split split);

struct DatasetInfo {
  Index rows = 0;
  Shape features;                 ///< of one record
  Index target_columns = 0;       ///< 0: no labels
  bool weighted = false;          ///< each record has a weight, which its loss is multiplied by
  std::string name;               ///< for messages: a path, or "synthetic"
  Index record_bytes = 0;         ///< of a packed record; 0: records are computed from their ids
  Index source_bytes = 0;         ///< sum of the sizes of its files; compared over the ranks
  Index target_classes = 0;       ///< number of classes of a target that is a category; 0: none is
  std::string target_text = {};   ///< that target, for messages: "label 'species' (setosa, virginica)"
  std::string scaled_label = {};  ///< the first label that data.columns scales, "price: log"; "": none is

  /// Columns that RecordSource::unpack writes beside the features: the targets, then the weight if there is
  /// one.
  Index label_columns() const { return target_columns + (weighted ? 1 : 0); }
};

/// The targets that the loss accepts: whole numbers below `classes` (if above 0), or numbers in [0, 1], or
/// finite numbers, perhaps of 0 or more, or above 0.
struct TargetRule {
  Index classes = 0;
  bool unit_interval = false;
  bool non_negative = false;
  bool positive = false;
  /// If given, allows() raises it to the largest class that it is asked about; threads may share it.
  std::atomic<Index>* largest_class = nullptr;

  bool allows(Scalar target) const;
  /// "a class below 10, the number of outputs of the model"
  std::string expected() const;
};

}  // namespace lockstep
