// One training step of a model on given samples, cut into replicas as a test wants: what comes out of it on
// all ranks, for comparisons between one replica and many.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/options.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/options.h"
#include "lockstep/nn/params.h"
#include "support/common.h"

namespace lockstep::test {

struct OneStep {
  ModelOptions model;
  Shape input;
  std::vector<Index> rows;                   ///< samples of each replica; sample i is the same whoever has it
  std::vector<Scalar> samples = {};          ///< all of them; empty: sample(input, i)
  std::vector<Scalar> output_gradient = {};  ///< of all samples; empty: that of a loss of the test's own
  std::function<void(const Layout&, std::span<Scalar>)> set_weights = {};  ///< empty: at random
  Index threads = 1;
  Index accumulate = 1;
  Reduction reduction = Reduction::kOrdered;
};

struct OneStepResult {
  std::vector<Scalar> outputs;                             ///< of all samples, in order
  std::vector<Scalar> gradient;                            ///< summed over all samples
  std::map<std::string, std::vector<Scalar>> gradient_of;  ///< the same by tensor
  std::vector<std::vector<Scalar>> states;                 ///< by replica, after the step
  double loss = 0;
};

/// Sample `i` of the test: fixed numbers, with a mean far from zero.
std::vector<Scalar> sample(const Shape& input, Index i);

/// *Collective.* The same result on all ranks.
OneStepResult run_one_step(Communicator& comm, const OneStep& step);

/// On one rank of this process.
OneStepResult run_one_step_alone(const OneStep& step);

}  // namespace lockstep::test
