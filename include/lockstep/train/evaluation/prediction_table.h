// Predictions as people read them: a table whose columns have names and whose classes do. It is made of the
// rows of predict_rows(): class numbers and values, one for each output.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"

namespace lockstep {

/// Names of the classes that a model tells apart, by number: of the outputs or, of one target of yes or no,
/// those of no and yes. They are those of the label of the training data; a class that it does not name has
/// its number. `labels`: see read_target_labels(). Requires targets of classes.
std::vector<std::string> class_names(const OutputForm& form, Index outputs,
                                     std::span<const TargetLabel> labels);

/// The part of a prediction that is wanted.
struct PredictionView {
  bool probabilities = false;            ///< those of all classes alone, as predict_proba of scikit-learn
  Index top = 0;                         ///< so many of the most probable classes alone, if above 0
  std::optional<double> threshold = {};  ///< probability of yes from which on the class is yes
  bool outputs_only = false;             ///< of one yes or no only the probability of yes
};

/// Errors: ConfigError where the outputs have no such view; it names the flag of predict.
void check_view(const PredictionView& view, const OutputForm& form, Index outputs);

struct PredictionColumn {
  std::string name;
  /// The texts of its class numbers; null: its values are numbers.
  std::shared_ptr<const std::vector<std::string>> classes = nullptr;
};

/// Columns, where names are those of classes and targets (of one target "prediction"):
///   a class for each target    prediction; of several targets their names
///   probabilities of classes   p_CLASS; of several targets p_TARGET, that of yes; scores: score_CLASS
///   values                     prediction, or the names of several targets
///   quantiles                  q0.1; of several targets TARGET_q0.1
///   the most probable classes  top1, p_top1, top2, p_top2, ...
/// A target without a name is called target0, target1, ...
class PredictionTable {
 public:
  /// Requires check_view().
  PredictionTable(const OutputForm& form, Index outputs, std::span<const TargetLabel> labels,
                  const PredictionView& view = {});

  std::span<const PredictionColumn> columns() const { return columns_; }
  /// Rows of predict_rows() as rows of the table, class numbers where a column has classes; valid until the
  /// next call.
  ConstMatrix convert(const ConstMatrix& rows);

 private:
  enum class Cell {
    kCopy,        // the number of a column of the row
    kComplement,  // 1 - that
    kAbove,       // 1 where it reaches the threshold, else 0
    kTopClass,    // the class with the n-th highest value
    kTopValue,    // that value
  };
  struct Source {
    Cell cell = Cell::kCopy;
    Index index = 0;  // of the column, or n
  };

  void add(PredictionColumn column, Source source);
  void add_classes(std::span<const TargetLabel> labels);
  void add_answers(std::span<const TargetLabel> labels);
  void add_values(std::span<const TargetLabel> labels);
  void rank_values(const Scalar* values);
  Scalar value_of(const Source& source, const Scalar* row) const;

  OutputForm form_;
  Index outputs_;
  PredictionView view_;
  std::vector<PredictionColumn> columns_;
  std::vector<Source> sources_;
  std::vector<Index> ranked_;  // numbers of the outputs of a row, the highest value first
  std::vector<Scalar> converted_;
};

}  // namespace lockstep
