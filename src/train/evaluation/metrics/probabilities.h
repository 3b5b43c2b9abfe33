// Probabilities and their logarithms, in double and without overflow.
#pragma once

#include "lockstep/math/matrix.h"

namespace lockstep {

/// log(sum of e^output) over the outputs of one row: what softmax divides by.
double log_sum_exp(const ConstMatrix& outputs, Index row);

/// log(1 + e^x).
double softplus(double x);

/// 1 / (1 + e^-x).
double logistic(double x);

/// The probability that softmax gives the second of two classes.
double second_of_two(const ConstMatrix& outputs, Index row);

}  // namespace lockstep
