// The loader turns the sampler's ids into matrices ahead of time, on its own thread. It never touches MPI.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/data/records.h"
#include "lockstep/data/sampler.h"

namespace lockstep {

/// (x - mean) / std, feature by feature or with one constant for all.
class Normaliser {
 public:
  /// Errors: ConfigError if a list has neither 1 nor `features` numbers, or a deviation is not above 0.
  Normaliser(const std::vector<double>& mean, const std::vector<double>& std, Index features);
  void apply(Matrix& x) const;

 private:
  bool identity_ = false;
  std::vector<Scalar> mean_;
  std::vector<Scalar> scale_;
};

/// The samples of one replica in one step.
struct ReplicaBatch {
  Index rows = 0;
  AlignedBuffer<Scalar> features;  ///< rows x features, then unused room
  AlignedBuffer<Scalar> targets;   ///< rows x target_columns, then unused room
};

/// The samples of the replicas that one rank hosts, in order of replica.
struct StepBatch {
  Index step = 0;
  std::vector<ReplicaBatch> replicas;
};

struct LoaderOptions {
  Range replicas;      ///< hosted here
  Range steps;         ///< to deliver, in order
  Index prefetch = 2;  ///< steps prepared ahead; memory is allocated once, for prefetch + 1 steps
};

class Loader {
 public:
  /// All references must outlive the loader.
  Loader(const Records& records, const DatasetInfo& info, const Sampler& sampler,
         const Normaliser& normaliser, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next step's samples; valid until the next call. *Blocking* until they are ready. An error on the
  /// loader's thread is thrown here. Requires that steps are left.
  const StepBatch& next();

  /// Memory of the batches in bytes.
  Index bytes() const;
};

}  // namespace lockstep
