// The order in which the ranks of a group take micro-batches through the stages of a model: pure functions,
// the same on all ranks.
//
// With an interleaved schedule a rank runs several *chunks* of the model ("model chunks", Narayanan et al.
// 2021): of S ranks and v chunks each, rank s runs the parts s, S + s, 2 S + s, ... of the S v parts into
// which the layers are divided. Activations go on from the last rank to the first one's next chunk, and the
// time in which a rank is idle becomes that of a pass through a part, which is v times shorter.
#pragma once

#include <vector>

#include "lockstep/distributed/options.h"

namespace lockstep {

/// One pass of a micro-batch through a chunk of the model.
struct StageTask {
  Index micro_batch = 0;
  bool forward = true;
  Index chunk = 0;  ///< of those that the rank runs
  bool operator==(const StageTask&) const = default;
};

/// The tasks of `stage` (of `stages`) in a step of so many micro-batches, in order (Narayanan et al. 2019,
/// "PipeDream"; Huang et al. 2019, "GPipe"; Narayanan et al. 2021, "Efficient large-scale language model
/// training"). A chunk takes its backward passes in the order of its forward passes.
///
/// Interleaved, micro-batches take the chunks in rounds: all of a round pass through a chunk, then through
/// the next one. A round has as many micro-batches as there are stages, and the last one those that remain,
/// too, so that any number is allowed and no stage has to wait between two rounds.
std::vector<StageTask> stage_tasks(const PipelineSchedule& schedule, Index stage, Index stages,
                                   Index micro_batches);

/// By chunk, the micro-batches in flight between their forward and their backward pass, at most.
std::vector<Index> chunks_alive(const PipelineSchedule& schedule, Index stage, Index stages,
                                Index micro_batches);
/// The sum over the chunks: passes whose activations have memory at a time.
Index micro_batches_alive(const PipelineSchedule& schedule, Index stage, Index stages, Index micro_batches);

/// The bubble: the share of the time that a stage is idle, if all stages take equally long. `chunks`: of the
/// model on each rank.
double idle_share(Index stages, Index micro_batches, Index chunks = 1);

}  // namespace lockstep
