// The addresses and ranges by which workers and servers know each other: a pure function of the options, the
// model and the ranks.
#pragma once

#include <string>
#include <vector>

#include "lockstep/distributed/blocks.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

struct Service {
  Index workers = 0;
  Index servers = 0;
  std::vector<Range> slices;  ///< ranges of the weights, by server

  int server_rank(std::size_t server) const { return static_cast<int>(workers) + static_cast<int>(server); }
};

/// With an optimizer that needs whole tensors, or their norms, a tensor has one owner.
Service lay_out_service(const Plan& plan, const Layout& layout, const Optimizer& optimizer);

}  // namespace lockstep
