// A training run with its concrete parts, once the plan is known to be in order.
#pragma once

#include <memory>
#include <string>

#include "experiment.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/dist/replica_states.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

class Run {
 public:
  /// All references must outlive the run.
  Run(Communicator& comm, const Experiment& experiment, const RunPlan& plan);

  /// Strategy::algorithm().
  std::string algorithm() const { return strategy_->algorithm(); }
  /// *Collective.* The weights to start from: random ones, or those of train.init. Errors: AgreedError if
  /// that file does not fit the model.
  void initialise_weights();
  /// *Collective.* Each rank reads its share of the records. Errors: AgreedError.
  void load();
  /// The training records held here, after load().
  const Records& records() const { return *records_; }

  /// *Collective.* After initialise_weights() and load(). Trains to the end, or to the first bad number;
  /// either way stored() then gives the last good weights.
  TrainingResult train(Observer& observer);

  /// *Collective.* Weights and running moments as they are now, as a model file holds them.
  AlignedBuffer<Scalar> stored();

 private:
  std::unique_ptr<Evaluation> load_evaluation(const RecordSource* source, Split split);
  std::unique_ptr<Loader> make_loader(Index steps) const;
  Range replicas() const { return plan_.dist.hosted[static_cast<std::size_t>(comm_.rank())]; }

  Communicator& comm_;
  const Experiment& experiment_;
  const RunPlan& plan_;
  Schedule schedule_;
  std::unique_ptr<Sampler> sampler_;
  ThreadTeam team_;
  std::unique_ptr<Strategy> strategy_;
  ReplicaStates states_;
  std::unique_ptr<ProgressThread> progress_;  // may be null
  std::unique_ptr<Records> records_;
  std::unique_ptr<Evaluation> validation_;  // may be null
  std::unique_ptr<Evaluation> test_;        // may be null
};

}  // namespace lockstep
