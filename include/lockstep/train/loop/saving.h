// How a run is saved while it goes on, and from where it resumes.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lockstep/train/evaluation/best_measure.h"
#include "lockstep/train/storage/checkpoint/interval.h"
#include "lockstep/train/storage/checkpoint/reader.h"
#include "lockstep/train/storage/checkpoint/writer.h"

namespace lockstep {

struct Saving {
  CheckpointWriter& writer;
  Interval every;     ///< beside a stop, which is always saved
  bool wait = false;  ///< a checkpoint that is due waits for one that is still being written
  std::optional<BestEvaluation> best =
      {};                        ///< its checkpoint is kept, and its weights are the model; else the last
  CheckpointHeader header = {};  ///< fields that are equal in all checkpoints of the run
  std::map<std::string, std::string> texts = {};  ///< rank 0: files beside the model
};

}  // namespace lockstep
