// Distributed evaluation: each sample exactly once whatever the number of ranks, and the same bits. The set
// is cut into blocks of eval.batch rows; each rank takes a range of blocks, the sums of the blocks are added
// along the fixed tree, and what is compared is whole numbers or has an order of its own. Where the model is
// divided into stages, a group of ranks takes the blocks, one after the other, and its last stage measures
// them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/data/record_source.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/evaluation/learning.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/options.h"

namespace lockstep {

// A change that is made to records before a model sees them.

/// Changes the features of the records `ids`, the rows of x, as they were read. Local; several threads call
/// it at once.
using FeatureChange = std::function<void(std::span<const Index> ids, Matrix& x)>;

// The forward passes of blocks of samples through what a rank runs of a model, for evaluations and
// predictions. Blocks follow one another through the stages, so that all of these compute at a time.

/// One thread's workspaces for blocks of at most so many rows, by chunk of the model, and the messages under
/// way from each of them to the next stage.
struct ForwardLane {
  ForwardLane(const Model& model, Index rows);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  std::vector<std::unique_ptr<Request>> sending;

  /// Waits for all messages.
  void finish();
};

/// *Blocking.* Takes a block through a chunk of the `model` of a rank: receives what the stage before sends,
/// computes, and starts to send to the stage behind, once the last message from this chunk is gone. Every
/// rank of the group calls it for the same blocks in the order of for_each_pass(). `pipeline`: null where the
/// model is not divided. The outputs of the model, valid until the chunk's next pass; nothing if they are
/// those of a later chunk or stage.
std::optional<ConstMatrix> forward_stage(Pipeline* pipeline, const Model& model, Index chunk,
                                         ForwardLane& lane, const Pass& pass);

/// The passes of so many blocks through the chunks of a rank, in order: with several chunks, as many blocks
/// as there are stages go through one, then through the next. More would wait for each other, since a chunk
/// has memory for one block. `pipeline` may be null.
void for_each_pass(const Model& model, const Pipeline* pipeline, Range blocks,
                   const std::function<void(Index block, Index chunk)>& pass);

/// The records of a set on their way through what a rank runs of a model: what evaluations and predictions
/// share.
class RecordPasses {
 public:
  /// *Local.* From now on the model sees the records so changed.
  void change_features(FeatureChange change) { change_ = std::move(change); }

 protected:
  /// One thread's memory for blocks of at most so many records.
  struct RecordLane {
    RecordLane(const RecordPasses& passes, Index rows);
    ForwardLane passes;
    AlignedBuffer<Scalar> features;
    AlignedBuffer<Scalar> labels;   // targets and weights
    AlignedBuffer<Scalar> lengths;  // positions that count; empty: all
    std::vector<Index> ids;         // of the block
  };

  /// `pipeline` may be null. `measures`: the targets are needed, too. References must outlive this.
  RecordPasses(const Model& model, const Normaliser& normaliser, Pipeline* pipeline, DatasetInfo info,
               bool measures);

  /// *Blocking.* Takes the records `ids` through a chunk, see forward_stage(); their labels are read with
  /// them, where they are needed.
  std::optional<ConstMatrix> forward(RecordLane& lane, const ModelValues& values, Range ids, Index chunk);

  DatasetInfo info_;
  RecordPart part_;  // of the records, that this rank needs
  std::unique_ptr<Records> records_;

 private:
  ConstMatrix take_features(RecordLane& lane, Index chunk);

  const Model& model_;
  const Normaliser& normaliser_;
  Pipeline* pipeline_;
  bool measures_;
  FeatureChange change_;
};

/// The arguments that an evaluation is made from. Everything outlives it.
struct EvaluationContext {
  Communicator& comm;
  const Model& model;
  const Loss& loss;
  const Normaliser& normaliser;
  ThreadTeam& team;
  const EvalOptions& options;
  const MetricSet& metrics;
  std::span<const Scalar> class_weights = {};  ///< weight of each class; empty: all count alike
  Pipeline* pipeline = nullptr;                ///< `model` is a stage of the model; null: all of it

  Communicator& workers() const { return pipeline == nullptr ? comm : pipeline->workers(); }
  bool measures() const { return pipeline == nullptr || pipeline->is_last(); }
  /// Outputs of the model, or of a position that has targets of its own.
  Index outputs() const { return loss.form().outputs_of_position(model.whole().output().size()); }
};

class Evaluation : public RecordPasses {
 public:
  /// *Collective.* Loads this rank's part of the set. Errors: AgreedError.
  Evaluation(const EvaluationContext& context, const RecordSource& source, Split split);

  /// *Collective.* The result is equal on all ranks.
  EvalMetrics run(const ModelValues& values) { return run(values, {}).value(); }
  /// *Collective.* Nothing if `interrupted` returns true, which is asked again and again, and is collective.
  std::optional<EvalMetrics> run(const ModelValues& values, const std::function<bool()>& interrupted);

  /// Gets a block of rows with their ids: those of records or, of positions, record * positions + position;
  /// several threads call it at once, each with its number.
  using Visit = std::function<void(int thread, const MetricRows& rows, std::span<const Index> ids)>;
  /// *Local.* Runs the model over this rank's part of the set.
  void visit(const ModelValues& values, const Visit& visit);
  int threads() const { return context_.team.size(); }
  /// *Collective.* The temperature that suits this set best. Requires predictions that are probabilities.
  /// Nothing if `interrupted`, as above.
  std::optional<Calibration> calibrate(const ModelValues& values, const std::function<bool()>& interrupted);
  /// *Collective.* On rank 0 the targets of the set, of a large one those of some records.
  TargetSample targets() const;
  /// From now on the outputs of the model are divided by it.
  void set_temperature(Scalar temperature) { temperature_ = temperature; }
  /// The records that this rank evaluates, or the part of them that its stage needs, and the worker that
  /// evaluates a record.
  const Records& records() const { return *records_; }
  const DatasetInfo& info() const { return info_; }
  /// On rank 0 the forecasts that need no model, where the set is of windows.
  const ForecastErrors& naive() const { return naive_; }
  /// Nothing unless the set is of windows, and their targets are values.
  const std::optional<ForecastForm>& forecast_form() const { return forecast_form_; }
  /// Names of several outputs of yes or no: those of the labels; empty if these have none.
  const std::vector<std::string>& output_names() const { return output_names_; }
  Split split() const { return split_; }
  Index owner(Index id) const { return part_of(blocks_, context_.workers().size(), id / rows_); }

 private:
  // The buffers of one thread.
  struct Lane : RecordLane {
    explicit Lane(const Evaluation& evaluation);
    AlignedBuffer<Scalar> weights;       // empty: none
    AlignedBuffer<Scalar> present;       // how many targets a row has; empty: no target is missing
    AlignedBuffer<Scalar> scaled;        // outputs divided by a temperature, or quantiles in order
    PositionRows positions;              // of a loss over positions
    Index crossed = 0;                   // records whose quantiles were not in order
    std::vector<Index> counts;           // counts of the confusion matrix, or of each output of yes or no
    std::vector<Scores> scores;          // scores that the metrics need
    std::vector<ScoredSamples> samples;  // samples that the metrics need
  };

  using BlockWork = std::function<void(Lane& lane, const MetricRows& rows, Index block)>;

  // *Collective.* Calls work(...) for each local block, with what the model gives for it. False if
  // interrupted.
  bool visit_blocks(const ModelValues& values, const std::function<bool()>& interrupted,
                    const BlockWork& work);
  SampleWeights take_labels(Lane& lane, Matrix& labels) const;
  ConstMatrix take_outputs(Lane& lane, const ConstMatrix& given) const;
  void run_block(Lane& lane, const ModelValues& values, Index block, Index chunk, const BlockWork& work);
  void measure_block(Lane& lane, const MetricRows& rows, Index block);
  EvalMetrics combine();
  void combine_counts(EvalMetrics& metrics);
  std::vector<MetricValue> combine_metrics(std::span<const double> sums);
  Range rows_of_block(Index block) const {
    return intersect({block * rows_, (block + 1) * rows_}, {0, info_.rows});
  }
  void measure_naive_forecasts(const RecordSource& source);
  Range reliability_columns() const;
  Index columns() const { return reliability_columns().end + context_.metrics.needs().sums + horizon_; }
  // Whether the rows that are measured have weights.
  bool has_weights() const { return info_.weighted || !context_.class_weights.empty(); }

  EvaluationContext context_;
  Split split_;
  std::vector<std::string> output_names_;
  std::optional<ForecastForm> forecast_form_;
  ForecastErrors naive_;
  Index horizon_ = 0;  // of windows
  Weighing weighing_;
  Index rows_;  // rows of a block, but for the last
  Index blocks_;
  Range local_blocks_;     // that pass through this rank
  Range measured_blocks_;  // the same, or none for a stage that is not the last
  std::optional<KernelWeights> weights_;
  TiedWeights tied_weights_;
  Scalar temperature_ = 1;
  std::vector<Lane> lanes_;
  std::vector<double> block_sums_;  // local blocks x columns()
};

}  // namespace lockstep
