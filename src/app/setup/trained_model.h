// The model of a finished run with its weights. Its data need not be there.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "experiment.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/dataset.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// The run that --model names.
struct FinishedRun {
  RunDirectory directory;
  Config config;       ///< with the flags
  std::string schema;  ///< that of its data; "": they have none
};

/// *Local.* Checks the results that the command line names, too. Errors: ConfigError, DataError.
FinishedRun open_finished_run(const CommandLine& line);
/// *Collective.* Checks also whether this machine and all ranks suit. Errors: AgreedError.
FinishedRun open_finished_run(Communicator& comm, const CommandLine& line);

/// The sets to evaluate that flags name.
std::set<Split> named_splits(const Config& config);

/// The model of a finished run with its weights; open_evaluated() opens its data. Its file is read once.
class TrainedModel : public Experiment {
 public:
  /// *Local.* With all weights, or with those of the stage that `rank` has of `ranks`: as many stages as
  /// distribute.stages says, if they are a multiple of it. Errors: ConfigError, DataError.
  explicit TrainedModel(FinishedRun finished, Index ranks = 1, Index rank = 0);

  const RunDirectory& directory() const { return directory_; }
  const std::string& schema() const { return schema_; }
  const StageGrid& grid() const { return grid_; }
  /// The part of the model that this rank runs.
  const Model& run() const { return stage_ ? *stage_ : *model; }
  ParamStore store() { return {.layout = &run().stored_layout(), .values = stored_.span()}; }
  ModelValues values() const { return stored_values(run(), stored_.span()); }
  /// Its outputs are divided by it; 1: the model is not calibrated.
  Scalar temperature() const { return temperature_; }
  /// The probability from which on it says yes: that of eval.threshold, which may name the measure that the
  /// run has chosen it by; nothing if there is none. Rank 0 warns where such a model has no threshold, as in
  /// a checkpoint. Errors: ConfigError if it was chosen by another measure.
  std::optional<double> threshold() const;

 private:
  RunDirectory directory_;
  std::string schema_;
  Index rank_;
  StageGrid grid_;
  ModelFile file_;
  std::unique_ptr<Model> stage_;  // null: this rank takes the whole model
  AlignedBuffer<Scalar> stored_;  // the weights of run(), then the running moments
  Scalar temperature_ = 1;
};

/// The ranks and threads that run a trained model. Both outlive it.
class ModelRunner {
 public:
  /// *Collective.*
  ModelRunner(Communicator& comm, const TrainedModel& trained);

  EvaluationContext evaluation(std::span<const Scalar> class_weights = {});
  PredictionContext prediction();

 private:
  Communicator& comm_;
  const TrainedModel& trained_;
  ThreadTeam team_;
  std::optional<Pipeline> pipeline_;  // where it is divided into stages
};

}  // namespace lockstep
