// Products of matrices with Eigen.
#include <fmt/format.h>

#include <Eigen/Dense>

#include "lockstep/math/kernels.h"

namespace lockstep {

std::string kernel_back_end() {
  return fmt::format("Eigen {}.{}.{} ({})", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                     Eigen::SimdInstructionSetsInUse());
}

void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
  y.noalias() = x * w.transpose();
  if (!bias.empty()) add_to_rows(bias, y);
}

void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  dx.noalias() = dy * w;
}

void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write) {
  const auto dy_columns = dy.middleCols(rows.begin, rows.size());
  auto dw_rows = dw.middleRows(rows.begin, rows.size());
  if (write == Write::kReplace) {
    dw_rows.noalias() = dy_columns.transpose() * x;
  } else {
    dw_rows.noalias() += dy_columns.transpose() * x;
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
  c.noalias() = a * ConstMatrix(layouts_->data, layouts_->rows, layouts_->columns);
}

}  // namespace lockstep
