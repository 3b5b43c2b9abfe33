#include "lockstep/math/kernels.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/seed.h"

namespace lockstep::orthogonalise_test {
namespace {

struct Orthogonalised {
  Orthogonalised(Index rows, Index columns) : start(rows, columns), result(rows * columns) {
    RandomStream random({.seed = test::seed()});
    for (Index i = 0; i < start.size(); ++i) start.data()[i] = random.normal();
    start /= start.norm();
    AlignedBuffer<Scalar> copy(rows * columns);
    AlignedBuffer<Scalar> scratch(orthogonalise_scratch(rows));
    std::copy_n(start.data(), start.size(), copy.data());
    orthogonalise(copy.span(), result.span(), rows, columns, scratch.span());
  }

  RowMajorMatrix start;
  AlignedBuffer<Scalar> result;
};

TEST(Orthogonalise, BringsAllSingularValuesNearOne) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {1, 9}, {5, 9}, {17, 40}, {64, 300}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Orthogonalised run(rows, columns);
    // Their squares are the eigenvalues of a symmetric matrix, and those of a positive definite one are
    // positive.
    const Eigen::MatrixXd result = as_eigen(as_matrix(run.result.span(), rows, columns)).cast<double>();
    const Eigen::MatrixXd squares = result * result.transpose();
    const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(rows, rows);
    EXPECT_EQ((squares - 0.6 * 0.6 * one).llt().info(), Eigen::Success);
    EXPECT_EQ((1.3 * 1.3 * one - squares).llt().info(), Eigen::Success);
  }
}

// Two matrices X and R have singular vectors in common if, and only if, X R^T and X^T R are symmetric.
TEST(Orthogonalise, KeepsTheSingularVectors) {
  const Orthogonalised run(6, 11);
  const Eigen::MatrixXf result = as_eigen(as_matrix(run.result.span(), 6, 11));
  for (const Eigen::MatrixXf& product :
       {Eigen::MatrixXf(run.start * result.transpose()), Eigen::MatrixXf(run.start.transpose() * result)}) {
    EXPECT_LT((product - product.transpose()).cwiseAbs().maxCoeff(), 3e-5F);
    EXPECT_GT(product.cwiseAbs().maxCoeff(), 0.01F);
  }
}

}  // namespace
}  // namespace lockstep::orthogonalise_test
