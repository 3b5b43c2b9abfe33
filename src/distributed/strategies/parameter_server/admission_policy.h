// Permission to compute the next gradient: the first server's decision, from what has been pushed so far.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/distributed/options.h"

namespace lockstep {

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
