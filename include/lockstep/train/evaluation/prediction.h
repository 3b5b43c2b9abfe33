// Batch inference: the outputs of a model for each record, on any number of ranks with the same numbers. The
// set is cut into blocks of `batch` rows, each one call of the model; in each round every thread of every
// rank takes the next block, and rank 0 passes the rows on in the order of the input. So no rank holds more
// results than those of one round. Where the model is divided into stages, a group of ranks takes several
// blocks in a round, one after the other, and its last stage has the results.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/evaluation/evaluation.h"

namespace lockstep {

/// The columns of predictions: first the labels, then the values.
struct PredictionColumns {
  Index labels = 0;                    ///< whole numbers
  Index values = 0;                    ///< one for each output of the model
  std::vector<double> quantiles = {};  ///< levels whose values each target has; empty: one value

  Index size() const { return labels + values; }
};

/// Classes: the most probable class, and the probabilities (softmax). Binary: for each output 1 if its
/// probability (sigmoid) is above one half, else 0, and the probabilities. Losses without probabilities
/// (Link::kIdentity): the outputs in their place. Values: e^output with Link::kLog, else the outputs.
PredictionColumns prediction_columns(const OutputForm& form, Index outputs);

/// Turns rows of outputs into rows of predictions (rows x prediction_columns().size()); values are those of
/// the targets, whose scale is not undone. Quantiles that cross are sorted. Gives the rows where they did.
Index predict_rows(const OutputForm& form, const ConstMatrix& outputs, Matrix& predictions);

/// Puts the quantiles of each target of the rows into rising order. Gives the rows where some were not.
Index sort_quantiles(const OutputForm& form, Matrix& rows);

/// "quantiles of 3 records crossed, and were sorted"; or of so many positions.
std::string describe_crossed(Index count, bool of_positions = false);

/// The value, one of predict_rows(), of an output in the units of the label. `scales`: those of the targets,
/// undone unless only their direction counts; empty: none.
double in_label_units(const OutputForm& form, std::span<const LabelScale> scales, Index output, Scalar value);

/// The number in all columns of padding, where records are predicted by position: a NaN with bits that no
/// arithmetic gives.
inline constexpr auto kPadding = std::bit_cast<Scalar>(std::uint32_t{0x7fc5a5a5});

/// Whether a row that Prediction gives is one of padding.
inline bool is_padding(const ConstMatrix& rows, Index row) {
  return std::bit_cast<std::uint32_t>(rows(row, 0)) == std::bit_cast<std::uint32_t>(kPadding);
}

/// The arguments that a prediction is made from. Everything outlives it.
struct PredictionContext {
  Communicator& comm;
  const Model& model;
  OutputForm form;
  const Normaliser& normaliser;
  ThreadTeam& team;  ///< a team of equally many threads on each rank; of one, where there is a pipeline
  Index batch;
  Scalar temperature = 1;        ///< what the outputs are divided by
  Pipeline* pipeline = nullptr;  ///< `model` is a stage of the model; null: all of it

  Communicator& workers() const { return pipeline == nullptr ? comm : pipeline->workers(); }
  bool has_outputs() const { return pipeline == nullptr || pipeline->is_last(); }
  /// Outputs of the model, or of a position that has targets of its own.
  Index outputs() const { return form.outputs_of_position(model.whole().output().size()); }
  /// Rows of predict_rows() that a record has.
  Index rows_of_record() const { return std::max<Index>(1, form.positions); }
};

class Prediction : public RecordPasses {
 public:
  /// Called on rank 0 with the next rows of predictions.
  using Sink = std::function<void(const ConstMatrix& rows)>;

  /// *Collective.* Loads this rank's part of a set; targets are not looked at. Errors: AgreedError.
  Prediction(const PredictionContext& context, const RecordSource& source);

  /// *Collective.* All rows, in the order of the set; by position those of a record in order. See
  /// is_padding().
  void run(const ModelValues& values, const Sink& sink);

  /// Records, or positions, of the last run() whose quantiles crossed, on all ranks.
  Index crossed() const { return crossed_; }

 private:
  struct Lane : RecordLane {  // one thread's
    explicit Lane(const Prediction& prediction);
    AlignedBuffer<Scalar> scaled;  // outputs divided by the temperature
    Index crossed = 0;
  };

  Range share(Index round, Index worker) const;
  void predict_share(const ModelValues& values, Range rows);
  void predict_block(Lane& lane, const ModelValues& values, Range rows, Index chunk, Matrix& predictions);
  Index predict_records(const Lane& lane, const ConstMatrix& outputs, Matrix& predictions) const;
  void collect(Index round, const Sink& sink);

  PredictionContext context_;
  PredictionColumns columns_;
  Index rows_;
  Index thread_blocks_;  // most blocks of a thread in a round
  Index share_rows_;     // most rows of a worker in a round
  std::vector<Lane> lanes_;
  std::vector<AlignedBuffer<Scalar>> results_;  // rows of a round: on rank 0 each worker's, else its own
  Index crossed_ = 0;
};

// Predictions as people read them: a table whose columns have names and whose classes do. It is made of the
// rows of predict_rows(): class numbers and values, one for each output.

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
  int digits = 0;  ///< significant digits of numbers that single precision cannot hold; 0: it can
};

/// Rows of a PredictionTable, in double: labels may lie close together and far from 0.
using PredictedRows = MatrixView<const double>;

/// Columns, where names are those of classes and targets (of one target "prediction"):
///   a class for each target    prediction; of several targets their names
///   probabilities of classes   p_CLASS; of several targets p_TARGET, that of yes; scores: score_CLASS
///   values                     prediction, or the names of several targets
///   quantiles                  q0.1; of several targets TARGET_q0.1
///   the most probable classes  top1, p_top1, top2, p_top2, ...
/// A target without a name is called target0, target1, ...
class PredictionTable : NoCopy {
 public:
  /// Requires check_view(). `scales`: see in_label_units().
  PredictionTable(const OutputForm& form, Index outputs, std::span<const TargetLabel> labels,
                  const PredictionView& view = {}, std::vector<LabelScale> scales = {});

  std::span<const PredictionColumn> columns() const { return columns_; }
  /// Rows of predict_rows() as rows of the table, class numbers where a column has classes; valid until the
  /// next call.
  PredictedRows convert(const ConstMatrix& rows);

 private:
  // Makes a cell of a row of predict_rows().
  using Value = std::function<double(const Scalar* row)>;

  void add(PredictionColumn column, Value value);
  Value answer(Index label, Index yes) const;
  void add_classes(std::span<const TargetLabel> labels);
  void add_answers(std::span<const TargetLabel> labels);
  void add_values(std::span<const TargetLabel> labels);
  void rank_values(const Scalar* values);

  OutputForm form_;
  Index outputs_;
  PredictionView view_;
  std::vector<LabelScale> scales_;
  std::vector<PredictionColumn> columns_;
  std::vector<Value> values_;  // by column
  std::vector<Index> ranked_;  // numbers of the outputs of a row, the highest value first
  std::vector<double> converted_;
};

}  // namespace lockstep
