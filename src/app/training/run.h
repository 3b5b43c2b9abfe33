// A training run with its concrete parts, once the plan is known to be in order.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/commands.h"
#include "app/setup/experiment.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/evaluation_details.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/loop/trainer.h"
#include "lockstep/train/loop/weight_average.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/model_file.h"
#include "resume_state.h"

namespace lockstep {

class Run {
 public:
  /// All references must outlive the run.
  Run(Communicator& comm, const Experiment& experiment, const RunPlan& plan);

  /// Strategy::algorithm().
  std::string algorithm() const { return strategy_->algorithm(); }
  /// *Collective.* The weights to start from: those of the checkpoint, if the run resumes from one, of
  /// train.init, or random ones. Errors: AgreedError if a file does not fit the model.
  void initialise_weights(const CheckpointReader* checkpoint = nullptr);
  /// *Collective.* Each rank reads its share of the records, from `step` on where they are streamed. Errors:
  /// AgreedError.
  void load(Index step = 0);
  /// After load(), a label that is far from 1, see doubt_label(); the same on all ranks.
  const std::string& label_doubt() const { return label_doubt_; }
  /// *Collective.* After the training. On rank 0 the doubt whether the model has learned, see
  /// doubt_learning().
  std::string doubt_learning(const TrainingResult& result, const StepLosses& losses);
  /// The sets that are evaluated, after load(); null for those that are not there.
  std::array<const Evaluation*, 2> evaluations() const { return {validation_.get(), test_.get()}; }
  /// After load(); empty if none were given.
  const std::vector<Scalar>& class_weights() const { return class_weights_; }
  /// The training records held here, after load().
  const Records& records() const { return *records_; }
  /// After load(), the content of the training set: whole if it is in memory, sampled if it is streamed.
  const Fingerprint& fingerprint() const { return fingerprint_; }

  /// After initialise_weights() and load(): what a Trainer of this run takes, to which the caller adds what
  /// it uses beside. It trains to the end, or to the first bad number; either way stored() then gives the
  /// last good weights.
  TrainingContext training(Observer& observer, RunControl& control);

  /// *Collective.* After the training. The threshold that eval.threshold names, for the model with these
  /// values; nothing if it names none, or if the validation set shows none. On rank 0 with the value of its
  /// measure, and each of the evaluations gets the answers at the threshold.
  std::optional<ChosenThreshold> choose_threshold(std::span<const Scalar> stored,
                                                  std::vector<EvalMetrics>& evaluations);

  /// *Collective.* After the training. Single predictions of the test set, else of the validation set, by the
  /// model with these values; nothing without such a set.
  std::optional<EvaluationDetails> describe_evaluation(std::span<const Scalar> stored);

  /// *Collective.* The model as it is now, as a model file holds it: weights, or their average, and running
  /// moments. Where the model is divided, this rank's stage of it.
  AlignedBuffer<Scalar> stored();
  /// *Collective.* Rank 0 writes the model with these numbers to the file that `path` gives there; where it
  /// is divided, the ranks of the first group send it their stages, piece by piece. `facts`: those of rank 0.
  /// Errors, on rank 0 alone, once no other rank waits for it: what `path` throws; DataError.
  void save_model(std::span<Scalar> stored, const ModelFacts& facts,
                  const std::function<std::filesystem::path()>& path);

 private:
  // *Collective.* Looks at the targets of some training records or, where these are streamed, of those that
  // are evaluated.
  void look_at_targets();
  TargetSample training_targets() const;  // *Collective.*
  // *Collective over the peers.* Gives the classes that this rank has found; nothing if records are streamed.
  std::optional<Index> load_training_records(PeerGroup& peers, Index step);
  // *Collective over the group.* Stages without records learn what the others know of them.
  void share_record_facts();
  Weighing weighing() const;
  bool streams() const { return plan_.sampling.stream && experiment_.train->info().record_bytes > 0; }
  RecordPart record_part() const;
  EvaluationContext evaluation_context(Split split);
  std::unique_ptr<Evaluation> load_evaluation(const RecordSource* source, Split split);
  std::unique_ptr<Loader> make_loader(Range steps);
  // The ranks that have the same weights: all, where the model is not divided.
  Communicator& workers() const { return pipeline_ == nullptr ? comm_ : pipeline_->workers(); }
  Index stage() const { return pipeline_ == nullptr ? 0 : pipeline_->stage(); }
  std::unique_ptr<Strategy> make_strategy();
  Range replicas() const { return plan_.dist.hosted_by(workers().rank()); }

  Communicator& comm_;
  const Experiment& experiment_;
  const RunPlan& plan_;
  std::unique_ptr<Pipeline> pipeline_;  // null: the model is not divided
  const Model& model_;                  // this rank's stage, or all of it
  Schedule schedule_;
  std::unique_ptr<Sampler> sampler_;
  ThreadTeam team_;
  std::unique_ptr<Strategy> strategy_;
  ReplicaStates states_;
  std::optional<WeightAverage> average_;
  std::unique_ptr<ProgressThread> progress_;  // may be null
  std::unique_ptr<Records> records_;
  Fingerprint fingerprint_;
  std::vector<Scalar> class_weights_;  // empty: all count alike
  bool masks_ = false;                 // training targets may be missing
  std::string label_doubt_;
  std::unique_ptr<Evaluation> validation_;  // may be null
  std::unique_ptr<Evaluation> test_;        // may be null
};

// How a run is saved and stopped: its time limit, its stop file and signals, its checkpoints.

/// Parts of it refer to others, so it stays where it was made. `experiment` and `resume` must outlive it.
struct RunWatch : NoCopy {
  /// *Local.* Errors: ConfigError.
  RunWatch(Communicator& comm, const Experiment& experiment, const ResumeState& resume,
           const RunRequest& request);

  TimeLeft left;  ///< time until this job is ended by force
  Interval every;
  RunControl control;
  CheckpointWriter writer;
  Saving saving;
  std::optional<EarlyStopping> early_stopping;
  std::optional<Plateau> plateau;
};

}  // namespace lockstep
