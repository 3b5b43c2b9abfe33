// Runs that cannot be, each with its reason, before any record is read: settings that cannot be combined, and
// outputs, losses and targets that do not suit each other. Nothing is switched off silently: what
// configs/texts/refusals.txt names is refused, and what is possible, but hardly meant, is said once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/refusal_name.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

struct Refusal {
  std::string name;    ///< the combination: "local_sgd with lossy compression"
  std::string reason;  ///< one sentence, with what to do instead
};

/// Every one there is.
std::span<const Refusal> refusals();

/// `found`: the numbers or names that make it apply, where the config does not show them.
/// Errors: ConfigError if it applies.
void refuse_if(bool applies, RefusalName name, const std::string& found = "");

/// Errors: ConfigError with the first refusal that applies to a run.
void refuse_run(const RunPlanRequest& request, const SamplingOptions& sampling);

/// The replicas of which batch norm has a single value in the step.
SingleValues single_values_of(const RunPlanRequest& request, const SamplingOptions& sampling, Index step);

struct FitQuestion {
  const DatasetInfo& data;
  const Model& model;
  OutputForm form;             ///< form of the outputs under the loss
  std::string loss;            ///< its name in the catalog
  std::string preset = {};     ///< of a preset "model.preset 'gpt' with model.outputs = 10", else ""
  bool probabilities = false;  ///< it learns from a probability for each class, too
  bool leaves_out = false;     ///< Loss::takes_missing_targets()
  bool lengths = false;        ///< the training set has lengths
};

/// Errors: ConfigError if the loss cannot learn these targets from these outputs.
void refuse_misfit(const FitQuestion& question);

/// Sentences about what is possible, but hardly meant: more outputs than classes, a sigmoid before a loss
/// that takes one itself, a mean squared error on classes, a batch beyond the data.
std::vector<std::string> find_doubts(const FitQuestion& question, const RunPlan& plan);

/// One such sentence, or "": `classes` were found in the data once it was read.
std::string doubt_spare_outputs(const FitQuestion& question, Index classes);

}  // namespace lockstep
