// A step of several workers with backup (Chen et al. 2016, "Revisiting distributed synchronous SGD"): it
// takes the first gradients that arrive at the first server, which sends the other servers the list of their
// workers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "messages.h"

namespace lockstep {

class StepCollector {
 public:
  /// A step takes the gradients of `needed` of the `workers`; of each, `size` numbers here.
  StepCollector(Index workers, Index needed, Index size);

  /// The buffer for the next gradient of a worker.
  std::span<Scalar> gradient_of(std::size_t worker) { return gradients_[worker].span(); }
  /// A gradient for the step under way is there.
  void add(std::size_t worker, double weight, double lr);
  /// The workers whose gradients make the step: those that are there, if they are enough. For the first
  /// server.
  std::optional<std::vector<Index>> decide() const;
  /// The decision of the first server: for each worker 1 or 0.
  void set_members(std::vector<Index> members) { members_ = std::move(members); }
  /// The members are known and their gradients are there.
  bool complete() const;
  /// Whether a worker's gradient is in the step. After set_members().
  bool takes(std::size_t worker) const { return members_[worker] != 0; }
  /// Their sum, with all their weight; the others' are forgotten. `sum` is of `size`.
  UpdateRequest take(std::span<Scalar> sum);

 private:
  Index needed_;
  std::vector<AlignedBuffer<Scalar>> gradients_;  // means, by worker
  std::vector<std::optional<double>> weights_;    // weight of each worker's samples; none: not there
  std::vector<Index> members_;                    // empty: not decided
  double lr_ = 0;
};

}  // namespace lockstep
