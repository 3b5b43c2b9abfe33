// The iteration with which muon makes a matrix nearly orthogonal.
#pragma once

#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

/// Numbers that orthogonalise() needs beside a matrix of so many rows and its result.
Index orthogonalise_scratch(Index rows);

/// Five Newton-Schulz steps (Jordan 2024, "Muon") in single precision: `x` (rows x columns, rows <= columns,
/// Frobenius norm at most 1) becomes a matrix with the same singular vectors, whose singular values lie about
/// between 0.7 and 1.2, and stands in `result`. `x` is used up. `scratch`: orthogonalise_scratch() numbers.
void orthogonalise(std::span<Scalar> x, std::span<Scalar> result, Index rows, Index columns,
                   std::span<Scalar> scratch);

}  // namespace lockstep
