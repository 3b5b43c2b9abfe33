// The factors of large dense gradients of all replicas of a node, in memory that its ranks share. Where few
// samples make a large gradient, dy and x are less to write and read than their product: each rank multiplies
// the rows that it owns, of all replicas at once, just before it steps on them.
//
// The caller synchronises: all factors of a step are there before product(). Nobody checks these sums:
// replicas check their gradients where they make them.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/params.h"

namespace lockstep {

class FactoredGradients {
 public:
  /// Scalars of the factors of all replicas of a plan.
  static Index shared_size(const Plan& plan);
  /// Scalars that a thread of a rank works with.
  static Index own_size(const Plan& plan);

  /// For the plan.factored of all its replicas in `shared`, of shared_size(): the same memory on all ranks.
  /// Empty: of no tensors.
  FactoredGradients(const Plan& plan, std::span<Scalar> shared);

  /// *Local.* Tensors of the plan whose gradients replicas leave as factors; what their arenas hold there is
  /// not read.
  std::span<const FactoredTensor> tensors() const { return tensors_; }
  /// *Local.* Samples of each replica in the step that begins, and the most that any part of a replica's
  /// gradient may be.
  void begin_step(std::span<const Index> samples, Scalar max_gradient);
  /// *Local, any thread, in a step.* The buffers in which a replica hosted here leaves the factors of one of
  /// tensors(), for its samples of the step.
  FactorBuffers buffers(std::size_t tensor, Index replica);
  /// *Local, any thread, in a step.*
  Scalar max_gradient() const { return max_gradient_; }
  /// *Local, any thread, in a step.* Some part of a gradient is NaN, or beyond max_gradient().
  void bad_gradient() { good_ = false; }
  /// *Local.* Whether there was no such gradient here.
  bool good() const { return good_; }

  /// Whether an offset of the arena is in one of the tensors.
  bool contains(Index offset) const { return tensor_at(offset) < tensors_.size(); }
  /// Requires contains(offset). The end of the row block that one product should compute.
  Index part_end(Index offset) const;
  /// *Local, a thread of the plan's.* The sum of the gradients of all replicas in a range within such a part,
  /// until the thread's next call.
  std::span<Scalar> product(int thread, Range range);
  /// *Local.* Spent in product() by the first thread in the step.
  double seconds() const { return lanes_.empty() ? 0 : lanes_.front().seconds; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // The buffers of one thread.
  struct Lane {
    PackedMatrix x;
    std::size_t packed = kNone;  // the tensor whose x that is
    AlignedBuffer<Scalar> product;
    double seconds = 0;  // time spent in product() in the step
  };

  std::size_t tensor_at(Index offset) const;
  // x of all samples of the step.
  ConstMatrix x_of(std::size_t tensor) const {
    return {x_[tensor].data(), begins_.back(), tensors_[tensor].in};
  }
  ConstMatrix dy_rows(std::size_t tensor, Range rows) const {
    return {dy_t_[tensor].data() + rows.begin * begins_.back(), rows.size(), begins_.back()};
  }

  std::span<const FactoredTensor> tensors_;
  std::vector<std::span<Scalar>> x_;     // x of each tensor; as many rows as the step has samples are used
  std::vector<std::span<Scalar>> dy_t_;  // dy transposed, of each tensor; as many columns are used
  std::vector<Index> begins_;            // first sample of each replica on the node; then the number of all
  std::vector<Lane> lanes_;              // one for each thread
  Scalar max_gradient_ = 0;
  std::atomic<bool> good_ = true;
};

}  // namespace lockstep
