// Borrowed row-major matrices and vectors: views of arenas, activations and batches. One row is one sample.
#pragma once

#include <Eigen/Core>
#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

using RowMajorMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::Map<RowMajorMatrix>;
using ConstMatrix = Eigen::Map<const RowMajorMatrix>;
using Array = Eigen::Map<Eigen::Array<Scalar, Eigen::Dynamic, 1>>;
using ConstArray = Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>;

inline Array as_array(std::span<Scalar> values) {
  return {values.data(), std::ssize(values)};
}
inline ConstArray as_array(std::span<const Scalar> values) {
  return {values.data(), std::ssize(values)};
}
inline Array as_array(Matrix& m) {
  return {m.data(), m.size()};
}
inline ConstArray as_array(const ConstMatrix& m) {
  return {m.data(), m.size()};
}
inline Matrix as_matrix(std::span<Scalar> values, Index rows, Index columns) {
  return {values.data(), rows, columns};
}
inline ConstMatrix as_matrix(std::span<const Scalar> values, Index rows, Index columns) {
  return {values.data(), rows, columns};
}
inline ConstMatrix rows_of(const ConstMatrix& m, Range rows) {
  return {m.data() + rows.begin * m.cols(), rows.size(), m.cols()};
}

}  // namespace lockstep
