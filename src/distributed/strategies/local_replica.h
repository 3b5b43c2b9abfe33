// A replica that takes local steps, with weights and optimizer state of its own, until one finds a bad
// number.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/saved_state.h"
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

// Block momentum on the average of the replicas: the change of the weights over a block of local steps is
// taken like a gradient, with a learning rate and momentum of its own (Chen & Huo 2016, "Scalable training of
// deep learning machines by incremental block training with intra-block parallel optimization and blockwise
// model-update filtering").

class BlockMomentum {
 public:
  /// Whether the options ask for more than the plain average.
  static bool wanted(const DistOptions& options) {
    return options.block_momentum > 0 || options.block_lr != 1;
  }

  BlockMomentum(const DistOptions& options, Index size);

  /// The weights that the first block starts from.
  void start(std::span<const Scalar> weights);
  /// Saves the state that is kept from block to block; rank 0 writes it.
  void add_saved(SavedState& state, int rank);
  /// That state by name, for comparisons of ranks.
  std::vector<NamedSpan> named_parts();
  /// Makes of the average at the end of a block the weights that the next one starts from.
  void apply(std::span<Scalar> average);

 private:
  Scalar momentum_;
  Scalar lr_;
  bool nesterov_;
  AlignedBuffer<Scalar> last_;  // weights that the block started from
  AlignedBuffer<Scalar> velocity_;
};

}  // namespace lockstep
