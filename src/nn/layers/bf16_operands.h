// Operands of a layer in bf16, beside its weights: rounded into memory that each thread keeps and only grows,
// so a step after the first allocates nothing.
#pragma once

#include "lockstep/math/kernels.h"

namespace lockstep {

/// The input of the layer at work on this thread; valid until the next call.
Bf16Matrix rounded_input(const ConstMatrix& x);
/// The gradient of the output of the layer at work; likewise valid until the next call.
Bf16Matrix rounded_output_gradient(const ConstMatrix& dy);

}  // namespace lockstep
