#include "lockstep/math/kernels.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <Eigen/SVD>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/seed.h"

namespace lockstep {
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
    const RowMajorMatrix result = as_eigen(as_matrix(run.result.span(), rows, columns));
    const Eigen::JacobiSVD<RowMajorMatrix> svd(result);
    EXPECT_GT(svd.singularValues().minCoeff(), 0.6F);
    EXPECT_LT(svd.singularValues().maxCoeff(), 1.3F);
  }
}

// With the singular vectors of the start U S V^T, U^T (U S' V^T) V is diagonal.
TEST(Orthogonalise, KeepsTheSingularVectors) {
  const Orthogonalised run(6, 11);
  const Eigen::JacobiSVD<RowMajorMatrix> svd(run.start, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::MatrixXf turned =
      svd.matrixU().transpose() * as_eigen(as_matrix(run.result.span(), 6, 11)) * svd.matrixV();
  const Eigen::MatrixXf diagonal = turned.diagonal().asDiagonal();
  EXPECT_LT((turned - diagonal).cwiseAbs().maxCoeff(), 1e-4F);
}

}  // namespace
}  // namespace lockstep
