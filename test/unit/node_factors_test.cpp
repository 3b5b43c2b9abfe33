// Gradients from factors that several replicas left, against the products themselves.
#include "lockstep/distributed/exchange/factored_gradients.h"

#include "lockstep/math/eigen_matrix.h"
#include "support/seed.h"

namespace lockstep::node_factors_test {

// Two tensors with a gap between them and behind them, three replicas.
class NodeFactorsTest : public testing::Test {
 protected:
  NodeFactorsTest() : rng_(test::seed()) {
    plan_.replicas = 3;
    plan_.threads = 2;
    plan_.max_rows = 4;
    plan_.factored = {{.op = 0, .range = {16, 16 + 300 * 700}, .out = 300, .in = 700},
                      {.op = 2, .range = {210'032, 210'032 + 5 * 48}, .out = 5, .in = 48}};
    shared_ = AlignedBuffer<Scalar>(FactoredGradients::shared_size(plan_));
    factors_ = std::make_unique<FactoredGradients>(plan_, shared_.span());
  }

  // One step with so many samples of each replica; what they leave becomes expected_.
  void leave(const std::vector<Index>& samples) {
    factors_->begin_step(samples, 1);
    std::normal_distribution<Scalar> normal;
    expected_.clear();
    for (std::size_t t = 0; t < plan_.factored.size(); ++t) {
      const FactoredTensor& tensor = plan_.factored[t];
      RowMajorMatrix sum = RowMajorMatrix::Zero(tensor.out, tensor.in);
      for (std::size_t replica = 0; replica < samples.size(); ++replica) {
        const Index rows = samples[replica];
        const RowMajorMatrix x = RowMajorMatrix::NullaryExpr(rows, tensor.in, [&] { return normal(rng_); });
        const RowMajorMatrix dy = RowMajorMatrix::NullaryExpr(rows, tensor.out, [&] { return normal(rng_); });
        const FactorBuffers buffers = factors_->buffers(t, static_cast<Index>(replica));
        std::copy_n(x.data(), x.size(), buffers.x);
        transpose({dy.data(), rows, tensor.out}, buffers.dy_t, buffers.stride);
        sum += dy.transpose() * x;
      }
      expected_.push_back(sum);
    }
  }

  void expect_sums(std::size_t tensor, Range range) {
    const Index first = plan_.factored[tensor].range.begin;
    for (Range part = range; !part.empty(); part.begin = part.end, part.end = range.end) {
      part.end = std::min(part.end, factors_->part_end(part.begin));
      ASSERT_GT(part.size(), 0);
      const std::span<const Scalar> found = factors_->product(1, part);
      ASSERT_EQ(std::ssize(found), part.size());
      for (Index i = 0; i < part.size(); ++i)
        ASSERT_NEAR(at(found, i), expected_[tensor].data()[part.begin - first + i], 1e-4)
            << part.begin << " " << i;
    }
  }
  std::mt19937_64 rng_;
  Plan plan_;
  AlignedBuffer<Scalar> shared_;
  std::unique_ptr<FactoredGradients> factors_;
  std::vector<RowMajorMatrix> expected_;
};

TEST_F(NodeFactorsTest, AnyRangeIsTheSumOverAllReplicas) {
  for (const std::vector<Index>& samples :
       std::vector<std::vector<Index>>{{4, 4, 4}, {1, 0, 3}, {0, 0, 0}, {4, 4, 4}}) {
    leave(samples);
    for (std::size_t tensor = 0; tensor < 2; ++tensor) {
      const Range whole = plan_.factored[tensor].range;
      expect_sums(tensor, whole);
      expect_sums(tensor, {whole.begin + 7, whole.end - 11});
      expect_sums(tensor, {whole.begin + whole.size() / 2, whole.begin + whole.size() / 2 + 1});
    }
  }
}

TEST_F(NodeFactorsTest, KnowsWhereItsTensorsAre) {
  for (const Index inside : {16, 16 + 300 * 700 - 1, 210'032}) EXPECT_TRUE(factors_->contains(inside));
  for (const Index outside : {0, 15, 16 + 300 * 700, 210'032 + 5 * 48})
    EXPECT_FALSE(factors_->contains(outside));
  FactoredGradients none(plan_, {});
  EXPECT_FALSE(none.contains(16));
  EXPECT_TRUE(none.tensors().empty());
}

}  // namespace lockstep::node_factors_test
