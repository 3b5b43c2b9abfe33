#include "service.h"

namespace lockstep {

Service lay_out_service(const Plan& plan, const Layout& layout, const Optimizer& optimizer) {
  const bool whole = optimizer.uses_trust_ratio() || optimizer.needs_whole_tensors();
  const BlockGrid grid(layout, whole ? Grain::kTensor : Grain::kBlock);
  return {.workers = plan.workers(),
          .servers = plan.servers,
          .slices = owner_slices(grid, {0, layout.size}, plan.servers)};
}

}  // namespace lockstep
