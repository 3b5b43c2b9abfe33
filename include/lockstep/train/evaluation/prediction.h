// Batch inference: the outputs of a model for each record, on any number of ranks with the same numbers. The
// set is cut into blocks of `batch` rows, each one call of the model; in each round every thread of every
// rank takes the next block, and rank 0 passes the rows on in the order of the input. So no rank holds more
// results than those of one round. Where the model is divided into stages, a group of ranks takes several
// blocks in a round, one after the other, and its last stage has the results.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/augmenter.h"
#include "lockstep/data/load_records.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/distributed/pipeline.h"
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

/// Turns rows of outputs into rows of predictions (rows x prediction_columns().size()). `scales`: those of
/// the targets, undone for values unless only their direction counts; empty: none.
void predict_rows(const OutputForm& form, const ConstMatrix& outputs, Matrix& predictions,
                  std::span<const LabelScale> scales = {});

/// The arguments that a prediction is made from. Everything outlives it.
struct PredictionContext {
  Communicator& comm;
  const Model& model;
  OutputForm form;
  const Normaliser& normaliser;
  ThreadTeam& team;  ///< a team of equally many threads on each rank; of one, where there is a pipeline
  Index batch;
  std::span<const LabelScale> label_scales = {};  ///< see predict_rows()
  Scalar temperature = 1;                         ///< what the outputs are divided by
  Pipeline* pipeline = nullptr;                   ///< `model` is a stage of the model; null: all of it

  Communicator& workers() const { return pipeline == nullptr ? comm : pipeline->workers(); }
  bool has_outputs() const { return pipeline == nullptr || pipeline->is_last(); }
  Index outputs() const { return model.whole().output().size(); }
};

class Prediction {
 public:
  /// Called on rank 0 with the next rows of predictions.
  using Sink = std::function<void(const ConstMatrix& rows)>;

  /// *Collective.* Loads this rank's part of a set; targets are not looked at. Errors: AgreedError.
  Prediction(const PredictionContext& context, const RecordSource& source);

  /// *Collective.* All rows, in the order of the set.
  void run(const ModelValues& values, const Sink& sink);

  /// *Local.* From now on the model sees the records so changed.
  void change_features(FeatureChange change) { change_ = std::move(change); }

 private:
  struct Lane {  // one thread's
    Lane(const PredictionContext& context, Index label_columns);
    ForwardLane passes;
    AlignedBuffer<Scalar> features;
    AlignedBuffer<Scalar> labels;
    AlignedBuffer<Scalar> scaled;  // outputs divided by the temperature
    std::vector<Index> ids;
  };

  Range share(Index round, Index worker) const;
  void predict_share(const ModelValues& values, Range rows);
  void predict_block(Lane& lane, const ModelValues& values, Range rows, Index chunk, Matrix& predictions);
  ConstMatrix take_features(Lane& lane, Range rows, Index chunk);
  void collect(Index round, const Sink& sink);

  PredictionContext context_;
  PredictionColumns columns_;
  Index rows_;
  Index label_columns_;
  Index thread_blocks_;  // most blocks of a thread in a round
  Index share_rows_;     // most rows of a worker in a round
  std::unique_ptr<Records> records_;
  FeatureChange change_;
  std::vector<Lane> lanes_;
  std::vector<AlignedBuffer<Scalar>> results_;  // rows of a round: on rank 0 each worker's, else its own
};

}  // namespace lockstep
