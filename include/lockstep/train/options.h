// Options of the run itself. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/options.h"

namespace lockstep {

/// How rank 0 shows that training goes on.
enum class ProgressStyle { kAuto, kLive, kPlain, kNone };

/// How much of the plan a run prints; plan.txt has all of it.
enum class PlanStyle { kShort, kFull };

/// The treatment of a step whose loss or gradient is not finite: the run ends, or the step is left out.
enum class OnNan { kStop, kSkip };

/// How a rank hangs on purpose: it computes for ever, or leaves out a collective that the others call.
enum class Hang { kLoop, kSkip };

struct RunOptions {
  std::string dir;
  std::string resume = "auto";
  std::vector<std::string> resume_allow;
  std::string time_limit;
  Index seed = 1;
  ProgressStyle progress = ProgressStyle::kAuto;
  PlanStyle plan = PlanStyle::kShort;
  Index log_every = 100;
};

/// train.calibrate of a run that leaves the outputs of its model as they are.
inline constexpr const char* kNoCalibration = "none";

/// 0 stands for "not given" in the alternatives of which exactly one is wanted.
struct TrainOptions {
  std::string init;
  std::vector<std::string> init_rename = {};  ///< "OURS=THEIRS"
  std::string init_map = "";                  ///< the program that wrote it
  bool init_partial = false;
  double epochs = 0;
  Index steps = 0;
  Index samples = 0;
  Index global_batch = 0;
  Index per_replica_batch = 0;
  Index replicas = 0;
  Index threads = 1;
  Index accumulate = 1;
  Tail tail = Tail::kKeep;
  OnNan on_nan = OnNan::kStop;
  Index skip_limit = 10;                   ///< steps in all
  std::vector<std::string> class_weights;  ///< "balanced", or "spam: 2" for each class; empty: none
  std::string keep;                        ///< "best", "last", or "" for what suits
  std::string early_stopping;
  std::string early_stopping_metric = "loss";
  double early_stopping_min_delta = 0;
  double ema = 0;  ///< decay of the exponential average of the weights; 0: none
  std::string swa_from;
  std::string calibrate = kNoCalibration;

  /// The replicas of the run: as given, or one for each thread of the workers.
  Index replicas_of(Index workers) const { return replicas > 0 ? replicas : workers * threads; }
  /// Samples of a step of so many replicas.
  Index global_batch_of(Index replica_count) const {
    return global_batch > 0 ? global_batch : per_replica_batch * replica_count;
  }
};

struct CheckpointOptions {
  std::string every = "10 minutes";
  bool wait = false;
  Index keep = 3;
  std::string dir;
};

struct EvalOptions {
  std::string every = "1 epoch";
  bool at_start = false;
  Index batch = 250;
  Index top_k = 5;
  Index precise_bn = 0;
  bool class_weights = false;
  std::vector<std::string> metrics;
  std::string threshold = {};  ///< see parse_threshold(); "": none
};

/// Forces rare paths, in tests and when hunting a fault.
struct DebugOptions {
  Index fail_rank = -1;
  Index fail_step = 0;
  Index delay_rank = -1;
  Index delay_ms = 0;
  Index hang_rank = -1;
  Index hang_step = 0;
  Hang hang = Hang::kLoop;
  Index flip_rank = -1;
  Index flip_step = 0;
  Index nan_replica = -1;
  Index nan_step = 0;
  Index nan_steps = 1;
  Index ranks_per_node = 0;
  double server_mbit = 0;
  bool emulate_bf16 = false;
};

}  // namespace lockstep
