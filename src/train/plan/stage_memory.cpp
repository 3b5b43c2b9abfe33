#include "lockstep/train/plan/stage_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/distributed/pipeline.h"
#include "lockstep/nn/activations.h"
#include "stage_plan.h"

namespace lockstep {

StageMemory::StageMemory(const RunPlanRequest& request, const RunPlan& plan,
                         std::function<Stage(Range ops)> make)
    : request_(request),
      plan_(plan),
      make_(std::move(make)),
      ties_(model_ties(request.model)),
      before_(request.model.ops().size() + 1),
      behind_(request.model.ops().size() + 1) {
  const PipelineSchedule& schedule = request.distribute.schedule;
  const Index stages = std::ssize(request.stages);
  for (Index part = 0; part < stages * schedule.chunks; ++part) {
    alive_.push_back(at(chunks_alive(schedule, part % stages, stages, plan.micro_batches), part / stages));
  }
}

const StageMemory::Parts& StageMemory::parts_of(Range ops) {
  std::optional<Parts>& known = ops.begin == 0 ? at(before_, ops.end) : at(behind_, ops.begin);
  if (known) return *known;
  const Stage stage = make_(ops);
  constexpr std::array<Index, 1> kOne{1};
  const MemoryPlan memory =
      plan_stage(request_, plan_,
                 {.model = *stage.model, .optimizer = stage.optimizer, .number = 0, .alive = kOne})
          .memory;
  const Index scratch = tied_gradient_size(*stage.model) * Index{sizeof(Scalar)};
  const Index borrowed = copies_of_borrowed(request_) * stage.model->borrowed().size * Index{sizeof(Scalar)};
  known = {.activations = memory.activations - scratch,
           .data = memory.data,
           .other = memory.total() - memory.activations - memory.data - borrowed};
  return *known;
}

// A tie inside of the part has memory for its gradient in each micro-batch. For one to an earlier part there
// are copies of the weight, and gradients on their way; the owner receives one of these at a time.
Index StageMemory::tied_bytes(Range ops, Index part) const {
  const Index kept = std::min(alive_.front(), std::ssize(request_.stages));
  const Index copies = copies_of_borrowed(request_);
  Index inside = 0;
  Index received = 0;
  Index given = 0;
  std::vector<Index> borrowed;  // owners of the weights that are copied
  for (const ModelTie& tie : ties_) {
    const bool owns = ops.contains(tie.owner);
    if (!ops.contains(tie.op)) {
      if (owns) received = std::max(received, tie.size);
    } else if (owns) {
      inside = std::max(inside, tie.size);
    } else {
      given += kept * tie.size;
      if (std::ranges::find(borrowed, tie.owner) == borrowed.end()) given += copies * tie.size;
      borrowed.push_back(tie.owner);
    }
  }
  return (at(alive_, part) * inside + received + given) * Index{sizeof(Scalar)};
}

Index StageMemory::bytes(Range ops, Index part) {
  const Index end = std::ssize(request_.model.ops());
  const Parts& before = parts_of({0, ops.end});
  const Parts& whole = parts_of({0, end});
  const Parts& behind = ops.begin == 0 ? whole : parts_of({ops.begin, end});
  const Index activations = before.activations + behind.activations - whole.activations;
  // Stages at the ends alone have records, as long as none between takes the input of the model.
  const Index data = ops.begin == 0 ? before.data : ops.end == end ? behind.data : 0;
  return before.other + behind.other - whole.other + data + at(alive_, part) * activations +
         tied_bytes(ops, part);
}

}  // namespace lockstep
