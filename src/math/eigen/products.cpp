// Products of matrices with Eigen.
#include <fmt/format.h>

#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

std::string kernel_back_end() {
  return fmt::format("Eigen {}.{}.{} ({})", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                     Eigen::SimdInstructionSetsInUse());
}

void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
  as_eigen(y).noalias() = as_eigen(x) * as_eigen(w).transpose();
  if (!bias.empty()) add_to_rows(bias, y);
}

void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  as_eigen(dx).noalias() = as_eigen(dy) * as_eigen(w);
}

void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write) {
  const auto dy_columns = as_eigen(dy).middleCols(rows.begin, rows.size());
  auto dw_rows = as_eigen(dw).middleRows(rows.begin, rows.size());
  if (write == Write::kReplace) {
    dw_rows.noalias() = dy_columns.transpose() * as_eigen(x);
  } else {
    dw_rows.noalias() += dy_columns.transpose() * as_eigen(x);
  }
}

struct PackedMatrix::Layouts {
  const Scalar* data = nullptr;
  Index rows = 0;
  Index columns = 0;
};

PackedMatrix::PackedMatrix() : layouts_(std::make_unique<Layouts>()) {}
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix::~PackedMatrix() = default;

void PackedMatrix::pack(const ConstMatrix& b) {
  *layouts_ = {b.data(), b.rows(), b.cols()};
}

void PackedMatrix::multiply(const ConstMatrix& a, Matrix& c) {
  const ConstMatrix b(layouts_->data, layouts_->rows, layouts_->columns);
  as_eigen(c).noalias() = as_eigen(a) * as_eigen(b);
}

}  // namespace lockstep
