// Borrowed numbers as matrices and vectors of Eigen. Only files that compute with Eigen include it: it is
// long.
#pragma once

#include <Eigen/Core>
#include <span>

#include "lockstep/math/matrix.h"

namespace lockstep {

using RowMajorMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Array = Eigen::Map<Eigen::Array<Scalar, Eigen::Dynamic, 1>>;
using ConstArray = Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>;

inline Eigen::Map<RowMajorMatrix> as_eigen(Matrix& m) {
  return {m.data(), m.rows(), m.cols()};
}
inline Eigen::Map<const RowMajorMatrix> as_eigen(const ConstMatrix& m) {
  return {m.data(), m.rows(), m.cols()};
}
inline Array as_array(std::span<Scalar> values) {
  return {values.data(), std::ssize(values)};
}
inline ConstArray as_array(std::span<const Scalar> values) {
  return {values.data(), std::ssize(values)};
}
inline Array as_array(Matrix& m) {
  return as_array(m.values());
}
inline ConstArray as_array(const ConstMatrix& m) {
  return as_array(m.values());
}

}  // namespace lockstep
