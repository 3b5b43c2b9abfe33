// A replica that takes local steps, with weights and optimizer state of its own, until one finds a bad
// number.
#pragma once

#include <span>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/update.h"

namespace lockstep {

struct LocalReplica {
  /// References must outlive it.
  LocalReplica(Index replica, const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
               ThreadTeam& team);

  bool stopped() const { return bad_step > 0; }
  /// A step with the sum of its gradients and, behind them, of its losses; or it stops.
  void step(std::span<Scalar> sum, const UpdateRequest& request);
  /// Its optimizer state and, unless all replicas have the same, its weights.
  void add_saved(SavedState& state, bool without_weights);

  Index number;
  AlignedBuffer<Scalar> weights;
  ParameterUpdate update;
  Index bad_step = 0;      ///< step whose loss or gradient was not finite; 0: none
  std::string bad_number;  ///< "step 7: replica 3: ..."

 private:
  const Layout* layout_;
};

}  // namespace lockstep
