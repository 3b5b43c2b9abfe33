// The lines with which a training run begins: its ranks, its plan, what each of them holds.
#pragma once

#include <string>

#include "app/setup/experiment.h"
#include "app/setup/rank_placement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/train/storage/run_record.h"
#include "resume_state.h"

namespace lockstep {

/// Rank 0: what run.json says when a run starts.
RunRecord first_record(const Experiment& experiment, const RunPlan& plan, const RankPlacement& placement,
                       const ResumeState& resume);

/// Logs the ranks, their placement and the plan.
void announce(const Config& config, const RunPlan& plan, const RankPlacement& placement, bool is_new);

/// *Collective.* One line for each rank: what it holds. Only a few of them are on the console, unless the
/// full plan is.
void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train, PlanStyle style);

// The length of a resumed run: whether anything is left of it, and what another length does to the learning
// rate.

/// Whether the run that was there went as far as this config asks.
bool is_over(const Config& config, const RunPlan& plan, const ResumeState& resume);

/// Errors: ConfigError if the run that was there has made more steps than the plan has, or if it is complete,
/// is to be longer now, and has no checkpoint to resume from. Requires that it is not over.
void refuse_length(const Config& config, const RunPlan& plan, const ResumeState& resume);

/// Rank 0: logs that no step is left, and warns if the learning rate of the next step is not that which the
/// checkpoint's config would give.
void log_rest(const Experiment& experiment, const RunPlan& plan, const ResumeState& resume);

// How much of what sequence layers compute is padding.

/// Without text where records have no lengths, or are streamed. Reads the lengths of the training records.
Note describe_padding(const Experiment& experiment, const SamplingOptions& sampling);

// Whether the replicas' shards hold about the same share of each class: training on shards that do not, as
// runs of a sorted file, is biased.

/// A warning for the plan, or "". Reads a sample of the training records. Errors: DataError.
std::string warn_of_uneven_shards(const Experiment& experiment, const SamplingOptions& sampling);

}  // namespace lockstep
