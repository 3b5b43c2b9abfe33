// A step of several workers with backup (Chen et al. 2016, "Revisiting distributed synchronous SGD"): it
// takes the first gradients that arrive at the first server, which sends the other servers the list of their
// workers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/options.h"
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

// Permission to compute the next gradient: the first server's decision, from what has been pushed so far.

/// The answer to a worker that asks for permission.
enum class Permit { kGo, kWait, kStop };

class AdmissionPolicy {
 public:
  AdmissionPolicy(const DistOptions& options, Index workers);

  /// Gives permission until so many steps are granted in all.
  void begin_round(Index until);
  /// The run resumes after so many steps.
  void resume_after(Index steps) { granted_ = steps; }
  /// Nobody gets permission any more.
  void stop() { stopped_ = true; }
  /// Nobody gets permission any more in this round.
  void cut_short() { cut_short_ = true; }

  /// `steps_done`: in all.
  Permit ask(std::size_t worker, Index steps_done) const;
  /// The worker goes. Gives the number of the step.
  Index go(std::size_t worker, Index steps_done);
  void pushed(std::size_t worker) { ++pushed_[worker]; }

  /// Gradients that every worker has pushed, if the mode is bounded; else 0.
  Index slowest() const;
  /// Gradients that it has pushed more than the slowest worker.
  Index ahead(std::size_t worker) const;

 private:
  // A step takes gradients of several workers, and a worker has one part in it.
  bool together() const { return options_.mode == ServerMode::kSync; }

  const DistOptions& options_;
  Index until_ = 0;
  Index granted_ = 0;
  bool stopped_ = false;
  bool cut_short_ = false;
  std::vector<Index> pushed_;     // gradients that each worker has pushed
  std::vector<Index> last_step_;  // the last step that each worker got permission for
};

}  // namespace lockstep
