#include "lockstep/train/plan/stage_memory.h"

#include <array>
#include <utility>

#include "lockstep/distributed/stage_tasks.h"
#include "stage_plan.h"

namespace lockstep {

StageMemory::StageMemory(const RunPlanRequest& request, const RunPlan& plan,
                         std::function<Stage(Range ops)> make)
    : request_(request), plan_(plan), make_(std::move(make)) {
  const PipelineSchedule& schedule = request.distribute.schedule;
  const Index stages = std::ssize(request.stages);
  for (Index part = 0; part < stages * schedule.chunks; ++part) {
    alive_.push_back(at(chunks_alive(schedule, part % stages, stages, plan.micro_batches), part / stages));
  }
}

const MemoryPlan& StageMemory::memory_of(Range ops) {
  std::map<Index, MemoryPlan>& known = ops.begin == 0 ? before_ : behind_;
  const Index cut = ops.begin == 0 ? ops.end : ops.begin;
  const auto found = known.find(cut);
  if (found != known.end()) return found->second;
  const Stage stage = make_(ops);
  constexpr std::array<Index, 1> kOne{1};
  const RunPlan plan = plan_stage(
      request_, plan_, {.model = *stage.model, .optimizer = stage.optimizer, .number = 0, .alive = kOne});
  return known.emplace(cut, plan.memory).first->second;
}

Index StageMemory::bytes(Range ops, Index part) {
  const Index end = std::ssize(request_.model.ops());
  const MemoryPlan& before = memory_of({0, ops.end});
  const MemoryPlan& whole = memory_of({0, end});
  const MemoryPlan& behind = ops.begin == 0 ? whole : memory_of({ops.begin, end});
  const Index activations = before.activations + behind.activations - whole.activations;
  const auto without_data = [](const MemoryPlan& memory) { return memory.total() - memory.data; };
  const Index all = without_data(before) + without_data(behind) - without_data(whole);
  // Stages at the ends alone have records, as long as none between takes the input of the model.
  const Index data = ops.begin == 0 ? before.data : ops.end == end ? behind.data : 0;
  return all + data + (at(alive_, part) - 1) * activations;
}

}  // namespace lockstep
