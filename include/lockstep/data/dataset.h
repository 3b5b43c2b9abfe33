// Facts of a data set that are known before its records are read, and the rule for its targets.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Which of the three data sets of a run.
enum class Split { kTrain, kValidation, kTest };

/// The one of three things that belongs to the set.
template <class T>
T of_split(Split split, T train, T validation, T test) {
  return split == Split::kTrain ? train : split == Split::kValidation ? validation : test;
}
/// "train", "validation", "test".
inline std::string to_string(Split split) {
  return of_split(split, "train", "validation", "test");
}
/// For sentences: "training", "validation", "test".
inline const char* set_name(Split split) {
  return of_split(split, "training", "validation", "test");
}

struct DatasetInfo {
  Index rows = 0;
  Shape features;                 ///< shape of one record
  Index target_columns = 0;       ///< 0: no labels
  bool weighted = false;          ///< each record has a weight, which its loss is multiplied by
  bool has_lengths = false;       ///< each record is a sequence and says how many of its positions count
  std::string name;               ///< its name in messages: a path, or "synthetic"
  Index record_bytes = 0;         ///< size of a packed record; 0: records are computed from their ids
  Index source_bytes = 0;         ///< sum of the sizes of its files; compared over the ranks
  Index target_classes = 0;       ///< number of classes of a target that is a category; 0: none is
  std::string target_text = {};   ///< such a target in messages: "label 'species' (setosa, virginica)"
  std::string scaled_label = {};  ///< the first label that data.columns scales, "price: log"; "": none is
  std::vector<std::string> class_names = {};  ///< names of the classes of that target, in order
  /// Above 0: records that are drawn anywhere may begin at so many positions. Their ids are `rows` and more.
  Index starts = 0;
  std::string label_file = {};  ///< path of the labels' own file, for messages; "" if they have none

  /// Columns that RecordSource::unpack writes beside the features: the targets, then the weight if there is
  /// one, then the length.
  Index label_columns() const { return target_columns + (weighted ? 1 : 0) + (has_lengths ? 1 : 0); }
};

/// The fault of the targets of a record.
struct BadTarget {
  Index position = -1;  ///< number of the bad target; -1: it is all of them together
  std::string found;
  std::string expected;
};

/// The targets that the loss accepts: whole numbers below `classes` (if above 0), or numbers in [0, 1], or
/// finite numbers, perhaps of 0 or more, or above 0.
struct TargetRule {
  bool anything = false;  ///< all numbers, and none
  Index classes = 0;
  bool unit_interval = false;
  bool non_negative = false;
  bool positive = false;
  /// Some of several targets of a record, but not all, may be missing, which is NaN.
  bool may_miss = false;
  /// Above 0: the targets are those of so many positions, equally many of each; under a rule for classes one.
  Index positions = 0;
  /// The positions whose targets count, for each length of a record; empty: all.
  std::span<const Index> lengths = {};
  /// Above 0: features are whole numbers below that.
  Index rows = 0;
  /// If given, allows() raises it to the largest class that it is asked about; threads may share it.
  std::atomic<Index>* largest_class = nullptr;
  /// If given, find_bad() sets it where it finds a target that is missing; threads may share it.
  std::atomic<bool>* any_missing = nullptr;

  bool allows(Scalar target) const;
  /// The part of `targets` that counts in a record of this length.
  std::span<const Scalar> counted(std::span<const Scalar> targets, Index length) const;
  /// "a class below 10, the number of outputs of the model"
  std::string expected() const;

  /// The fault of all targets of a record, if there is one. Several targets under a rule for classes are
  /// the probabilities of the classes: each in [0, 1], and 1 together.
  std::optional<BadTarget> find_bad(std::span<const Scalar> targets) const;
};

/// The class that the targets of a record name: the class number itself; of probabilities the largest (the
/// first of equals); of a share of yes whether it is above one half.
Index class_of(std::span<const Scalar> targets);

}  // namespace lockstep
