// The state and the steps of an optimizer that needs whole tensors, for those tensors that a rank owns. A
// thread takes a tensor alone. Of each slot a tensor has as much as the optimizer asks for, so state is an
// array of its own layout, not of the arena's.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/nn/params.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// A tensor of the layout as optimizers see it.
TensorInfo tensor_info(const Layout& layout, std::size_t param);

class WholeTensors {
 public:
  /// `owned`: ranges of the arena that hold whole tensors. References must outlive it.
  WholeTensors(const Layout& layout, const Optimizer& optimizer, std::span<const Range> owned,
               ThreadTeam* team);

  /// Numbers of a slot for the owned tensors.
  Index slot_size(std::size_t slot) const { return held_[slot]; }
  /// One step on all owned tensors, whose gradients may be used up. `slots`: of slot_size(). `info`: nothing
  /// for a tensor that is frozen.
  void step(std::span<Scalar> weights, std::span<Scalar> gradient, std::span<AlignedBuffer<Scalar>> slots,
            const std::function<std::optional<StepInfo>(std::size_t param)>& info);
  /// See ParameterUpdate::add_saved(). Who saves the first weight of a tensor saves its state.
  void add_saved(SavedState& state, Range written, const std::string& prefix,
                 std::span<AlignedBuffer<Scalar>> slots) const;
  /// Calls take(param, slot, range in the memory of the slot) for all state.
  void for_each_state(const std::function<void(std::size_t param, std::size_t slot, Range held)>& take) const;

 private:
  struct Tensor {
    std::size_t param = 0;
    TensorInfo info;
    Range range;                                 // its range in the arena
    std::array<Range, kMaxSlots> held = {};      // its range in the memory of a slot
    std::array<Range, kMaxSlots> in_array = {};  // its range in the slot's array, which all owners share
  };

  void divide(Index threads);
  void step(const Tensor& tensor, std::span<Scalar> weights, std::span<Scalar> gradient,
            std::span<AlignedBuffer<Scalar>> slots, std::span<Scalar> scratch, const StepInfo& info) const;

  const Optimizer& optimizer_;
  ThreadTeam* team_;
  std::size_t slots_;
  std::vector<Tensor> tensors_;
  std::array<Index, kMaxSlots> held_ = {};
  std::array<Index, kMaxSlots> array_ = {};                       // size of the array of a slot
  std::array<std::vector<Index>, kMaxSlots> chunk_offsets_ = {};  // see SavedPart
  std::vector<std::vector<std::size_t>> by_thread_;               // indices in tensors_, for each thread
  std::vector<AlignedBuffer<Scalar>> scratch_;  // one for each thread; empty before the first step
};

}  // namespace lockstep
