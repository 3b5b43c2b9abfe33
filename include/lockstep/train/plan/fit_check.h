// Whether the model's outputs, the loss, the targets and the batch suit each other. What cannot be meant is
// refused before any record is read; what may be meant is said once.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

struct FitQuestion {
  const DatasetInfo& data;
  const Model& model;
  OutputForm form;             ///< form of the outputs under the loss
  std::string loss;            ///< its name in the catalog
  bool probabilities = false;  ///< it learns from a probability for each class, too
};

/// Errors: ConfigError if the loss cannot learn these targets from these outputs.
void refuse_misfit(const FitQuestion& question);

/// Sentences about what is possible, but hardly meant: more outputs than classes, a sigmoid before a loss
/// that takes one itself, a mean squared error on classes, a batch beyond the data.
std::vector<std::string> find_doubts(const FitQuestion& question, const RunPlan& plan);

/// One such sentence, or "": `classes` were found in the data once it was read.
std::string doubt_spare_outputs(const FitQuestion& question, Index classes);

}  // namespace lockstep
