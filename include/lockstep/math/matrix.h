// Borrowed row-major matrices: views of arenas, activations and batches. One row is one sample. What computes
// with Eigen takes them as as_eigen() and as_array() of eigen_matrix.h.
#pragma once

#include <span>
#include <type_traits>

#include "lockstep/base/types.h"

namespace lockstep {

/// The rows follow each other without gaps. A copy is a view of the same numbers.
template <class T>
class MatrixView {
 public:
  MatrixView(T* data, Index rows, Index cols) : data_(data), rows_(rows), cols_(cols) {}
  MatrixView(const MatrixView&) = default;
  MatrixView& operator=(const MatrixView&) = delete;  // it would leave open whether the numbers are copied

  operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data_, rows_, cols_}; }

  T* data() { return data_; }
  const T* data() const { return data_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  T& operator()(Index row, Index col) { return data_[row * cols_ + col]; }
  const T& operator()(Index row, Index col) const { return data_[row * cols_ + col]; }
  std::span<T> values() { return {data_, static_cast<std::size_t>(size())}; }
  std::span<const T> values() const { return {data_, static_cast<std::size_t>(size())}; }

 private:
  T* data_;
  Index rows_;
  Index cols_;
};

using Matrix = MatrixView<Scalar>;
using ConstMatrix = MatrixView<const Scalar>;

inline Matrix as_matrix(std::span<Scalar> values, Index rows, Index columns) {
  return {values.data(), rows, columns};
}
inline ConstMatrix as_matrix(std::span<const Scalar> values, Index rows, Index columns) {
  return {values.data(), rows, columns};
}
template <class T>
MatrixView<const T> rows_of(const MatrixView<T>& m, Range rows) {
  return {m.data() + rows.begin * m.cols(), rows.size(), m.cols()};
}

}  // namespace lockstep
