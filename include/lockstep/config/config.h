// The whole configuration of a run, as plain values.
#pragma once

#include <set>
#include <string>

#include "lockstep/comm/options.h"
#include "lockstep/data/options.h"
#include "lockstep/distributed/options.h"
#include "lockstep/nn/options.h"
#include "lockstep/optim/options.h"
#include "lockstep/report/options.h"
#include "lockstep/train/options.h"

namespace lockstep {

struct Config {
  RunOptions run;
  DataOptions data;
  ModelOptions model;
  LossOptions loss;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  TrainOptions train;
  EvalOptions eval;
  CheckpointOptions checkpoint;
  ReportOptions report;
  DistOptions distribute;
  CommOptions comm;
  DebugOptions debug;
  std::set<std::string> given = {};    ///< keys that the file or a flag sets
  std::set<std::string> flagged = {};  ///< keys of them that a flag sets
};

/// Whether there is a validation set: a file, or samples that are held back.
inline bool has_validation(const Config& config) {
  return config.data.has_validation();
}

/// Whether the model is that of the best evaluation.
inline bool keeps_best(const Config& config) {
  return has_validation(config) && config.train.keep != "last";
}

}  // namespace lockstep
