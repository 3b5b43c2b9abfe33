// What a pass says of its gradient: good numbers or not, whether it is looked at itself or checked by the two
// factors that it is the product of.
#include "lockstep/nn/workspace.h"

#include "lockstep/distributed/update.h"
#include "support/common.h"

namespace lockstep::gradient_check_test {

constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
constexpr Scalar kMax = 1e20F;  // beyond all of good numbers

// Passes of one model with so many samples, all numbers 1 at first.
class Passes {
 public:
  Passes(const std::string& layers, const Shape& input, Index rows)
      : model_({.layers = layers}, input),
        workspace_(model_, rows, ActivationRetention::kForTraining),
        x_(rows * input.size()),
        dy_(rows * model_.output().size()),
        weights_(model_.layout().size),
        state_(model_.state_layout().size),
        gradient_(model_.layout().size) {
    for (auto* numbers : {&x_, &dy_, &weights_, &state_}) std::ranges::fill(numbers->span(), Scalar{1});
  }

  // Its first dense gradient stays what it is made of.
  void leave_factors() {
    const FactoredTensor tensor = model_.factored_tensors().front();
    factor_x_ = AlignedBuffer<Scalar>(rows() * tensor.in);
    factor_dy_ = AlignedBuffer<Scalar>(rows() * tensor.out);
    factors_.assign(model_.ops().size(), {});
    at(factors_, tensor.op) = {factor_x_.data(), factor_dy_.data(), rows()};
    std::ranges::fill(part(gradient_.span(), tensor.range), kNan);  // what nobody may read
  }
  Index rows() const { return x_.size() / model_.input().size(); }
  GradientLimit limit(Scalar most) const { return {.most = most, .samples = rows()}; }
  bool good(Scalar most) { return good(limit(most), Write::kReplace); }
  bool good(const std::optional<GradientLimit>& limit, Write write) {
    workspace_.forward({.values = {.weights = weights_.span(), .state = state_.span()},
                        .x = ConstMatrix(x_.data(), rows(), model_.input().size()),
                        .batch = {.training = true},
                        .factors = factors_,
                        .limit = limit});
    Matrix dy = workspace_.output_gradient();
    std::ranges::copy(dy_.span(), dy.data());
    workspace_.backward(gradient_.span(), write, {});
    return workspace_.good_gradient();
  }

  // With another number in one place, first or last.
  void expect_found(std::span<Scalar> numbers, const std::string& where) {
    for (const Scalar bad : {kNan, kInfinity, -kInfinity, Scalar{1e25F}})
      for (Scalar* place : {&numbers.front(), &numbers.back()}) {
        const Scalar before = std::exchange(*place, bad);
        EXPECT_FALSE(good(kMax)) << bad << " in " << where;
        EXPECT_TRUE(good({}, Write::kReplace)) << "nobody asked";
        *place = before;
        EXPECT_TRUE(good(kMax)) << "after " << bad << " in " << where;
      }
  }
  std::span<Scalar> x() { return x_.span(); }
  std::span<Scalar> dy() { return dy_.span(); }

 private:
  Model model_;
  Workspace workspace_;
  AlignedBuffer<Scalar> x_, dy_, weights_, state_, gradient_, factor_x_, factor_dy_;
  std::vector<FactorBuffers> factors_;
};

struct Case {
  std::string layers;
  Shape input;
  Index rows;
};

// Few samples beside the weights, and many; in blocks of samples, of which the last has one; tied weights.
TEST(GradientCheck, FindsBadNumbersInAnyModel) {
  for (const Case& c : std::vector<Case>{{"dense(300, bias=false)", {{200}}, 4},
                                         {"dense(5)", {{7}}, 90},
                                         {"dense(300) dense(3)", {{200}}, 4},
                                         {"dense(40) dense(30) dense(2)", {{50}}, 2913},
                                         {"conv2d(3, 3) flatten dense(2)", {{5, 6, 2}}, 4},
                                         {"dense(30, bias=false) dense(30, tie=0)", {{30}}, 9},
                                         {"dense(300) dense(300, tie=0, bias=false)", {{300}}, 2}}) {
    SCOPED_TRACE(c.layers);
    Passes passes(c.layers, c.input, c.rows);
    passes.expect_found(passes.x(), "x");
    passes.expect_found(passes.dy(), "dy");
  }
  // What normalises takes large inputs, rightly; a table has no numbers there.
  for (const Case& c : std::vector<Case>{{"dense(8) batch_norm dense(2)", {{3}}, 5},
                                         {"dense(8) layer_norm dense(2)", {{3}}, 5},
                                         {"embedding(6, 8) dense(2)", {{1}}, 4}}) {
    SCOPED_TRACE(c.layers);
    Passes passes(c.layers, c.input, c.rows);
    passes.expect_found(passes.dy(), "dy");
  }
}

TEST(GradientCheck, FindsThemInFactorsThatALayerLeaves) {
  for (const Case& c : std::vector<Case>{{"dense(300, bias=false)", {{200}}, 4},
                                         {"dense(150)", {{130}}, 2500},
                                         {"dense(150) dense(3)", {{130}}, 2500}}) {
    SCOPED_TRACE(c.layers);
    Passes passes(c.layers, c.input, c.rows);
    passes.leave_factors();
    passes.expect_found(passes.x(), "x");
    passes.expect_found(passes.dy(), "dy");
  }
}

// Four samples of ones: each part of the gradient is four.
TEST(GradientCheck, KnowsHowManySamplesTheLimitIsFor) {
  for (const Index inputs : {200, 2}) {
    for (const bool leaves : {false, true}) {
      Passes passes("dense(300)", {{inputs}}, 4);
      if (leaves) passes.leave_factors();
      EXPECT_TRUE(passes.good(4)) << inputs;
      EXPECT_FALSE(passes.good(3.9F)) << inputs;
    }
    Passes half("dense(300, bias=false)", {{inputs}}, 4);  // of the samples; the others are as good
    half.leave_factors();
    EXPECT_TRUE(half.good(GradientLimit{.most = 8, .samples = 8}, Write::kReplace)) << inputs;
    EXPECT_FALSE(half.good(GradientLimit{.most = 7.9F, .samples = 8}, Write::kReplace)) << inputs;
  }
}

// Its product is what counts, not a large factor beside a small one.
TEST(GradientCheck, OnlyProductsCount) {
  for (const bool leaves : {false, true}) {
    Passes passes("dense(300, bias=false)", {{200}}, 4);
    if (leaves) passes.leave_factors();
    std::ranges::fill(passes.x(), Scalar{1e6F});
    std::ranges::fill(passes.dy(), Scalar{1e-6F});
    EXPECT_TRUE(passes.good(4.1F));
    EXPECT_FALSE(passes.good(3.9F));
  }
}

// A sum is looked at once all is added to it, factors in each pass.
TEST(GradientCheck, ASumIsLookedAtWhenItIsComplete) {
  for (const Index inputs : {2, 200}) {
    Passes passes("dense(300, bias=false)", {{inputs}}, 4);
    GradientLimit first = passes.limit(kMax);
    first.complete = false;
    passes.x().front() = kNan;
    EXPECT_TRUE(passes.good(first, Write::kReplace));
    passes.x().front() = 1;
    GradientLimit last = passes.limit(inputs == 2 ? kMax : Scalar{3.9F});  // not checked by factors
    EXPECT_FALSE(passes.good(last, Write::kAdd)) << inputs;
    passes.leave_factors();
    passes.x().front() = kNan;
    EXPECT_FALSE(passes.good(first, Write::kReplace)) << inputs;
  }
}

// Weights so great that the limit is the largest there is: sums are numbers still.
TEST(GradientCheck, NoLimitLetsInfinityThrough) {
  for (const bool leaves : {false, true}) {
    Passes passes("dense(300, bias=false)", {{200}}, 4);
    if (leaves) passes.leave_factors();
    std::ranges::fill(passes.x(), Scalar{1e19F});
    std::ranges::fill(passes.dy(), Scalar{1e19F});
    EXPECT_FALSE(passes.good(max_sum(1e30)));
    std::ranges::fill(passes.dy(), Scalar{1e18F});
    EXPECT_TRUE(passes.good(max_sum(1e30)));
  }
}

}  // namespace lockstep::gradient_check_test
