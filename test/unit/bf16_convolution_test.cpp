// Convolutions in bf16, with whichever back end the build has, against those in fp32 on the same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "lockstep/math/convolution.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/bf16_operands.h"
#include "support/seed.h"

namespace lockstep::bf16_convolution_test {
namespace {

using namespace test;

ConvolutionShape square(Index side, Index in, Index out, const Window& window, Index groups = 1) {
  return {.in_height = side,
          .in_width = side,
          .in_channels = in,
          .out_channels = out,
          .vertical = window,
          .horizontal = window,
          .groups = groups};
}

std::vector<ConvolutionShape> convolutions() {
  const Window three{.size = 3, .pad_before = 1, .pad_after = 1};
  const Window halving{.size = 3, .stride = 2, .pad_before = 0, .pad_after = 1};
  return {square(28, 1, 6, three),
          square(8, 16, 32, three),
          square(9, 16, 16, halving),
          square(7, 16, 32, {.size = 1, .stride = 2}),
          square(8, 24, 24, three, 24),
          square(8, 3, 3, halving, 3),
          square(6, 4, 12, three, 4),
          square(5, 7, 11, {.size = 5}),
          square(8, 32, 32, three, 2),
          square(9, 5, 9, {.size = 3, .dilation = 2}),
          square(4, 64, 48, three),
          square(1, 10, 5, {}),
          square(9, 4, 6, {.size = 2, .stride = 3, .pad_before = 1, .pad_after = 0}, 2)};
}

struct Convolution {
  Convolution(const ConvolutionShape& s, Index rows, const MakeOperand& make, std::mt19937_64& rng)
      : shape(s),
        x(make(rows, s.in_size(), rng)),
        weights(make(1, s.weight_count(), rng)),
        dy(make(rows, s.out_size(), rng)),
        bias(make(1, s.out_channels, rng).wide),
        y(rows, s.out_size()),
        dx(rows, s.in_size()),
        dweights(make(1, s.weight_count(), rng).wide) {}

  void run(Write write, bool biased) {
    Matrix y_matrix = y.matrix();
    Matrix dx_matrix = dx.matrix();
    convolution_forward(shape, x.view(), {.values = weights.values},
                        biased ? bias.values() : std::span<Scalar>(), y_matrix);
    convolution_backward_data(shape, dy.view(), {.values = weights.values}, dx_matrix);
    convolution_backward_weights(shape, x.view(), dy.view(), dweights.values(), write);
  }

  void run_in_fp32(Write write, bool biased) {
    Matrix y_matrix = y.matrix();
    Matrix dx_matrix = dx.matrix();
    convolution_forward(shape, x.wide.view(), {.values = weights.wide.values()},
                        biased ? bias.values() : std::span<Scalar>(), y_matrix);
    convolution_backward_data(shape, dy.wide.view(), {.values = weights.wide.values()}, dx_matrix);
    convolution_backward_weights(shape, x.wide.view(), dy.wide.view(),
                                 {.weights = dweights.values(), .bias = {}, .write = write});
  }

  ConvolutionShape shape;
  RoundedOperand x, weights, dy;
  Operand bias, y, dx, dweights;
};

TEST_F(Bf16Kernels, ConvolutionsOfWholeNumbersAreExact) {
  std::mt19937_64 rng(test::seed());
  for (const ConvolutionShape& shape : convolutions()) {
    for (const Index rows : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message()
                   << rows << " rows of " << shape.in_height << "^2 x " << shape.in_channels << " to "
                   << shape.out_channels << ", groups " << shape.groups << ", size " << shape.vertical.size);
      Convolution convolution(shape, rows, test::whole_numbers, rng);
      Convolution reference = convolution;
      const Write write = rows == 5 ? Write::kAdd : Write::kReplace;
      convolution.run(write, rows == 1);
      reference.run_in_fp32(write, rows == 1);
      expect_equal(convolution.y, reference.y, "forward");
      expect_equal(convolution.dx, reference.dx, "backward data");
      expect_equal(convolution.dweights, reference.dweights, "backward weights");
    }
  }
}

void expect_close(const Operand& found, const Operand& expected, double scale) {
  const auto difference = (as_array(found.view()) - as_array(expected.view())).abs();
  EXPECT_LE(difference.size() == 0 ? 0.0 : static_cast<double>(difference.maxCoeff()), 1e-5 * scale);
}

TEST_F(Bf16Kernels, SumsOfConvolutionsAreInFp32) {
  std::mt19937_64 rng(test::seed());
  for (const ConvolutionShape& shape : convolutions()) {
    Convolution convolution(shape, 6, random_operand, rng);
    Convolution reference = convolution;
    convolution.run(Write::kReplace, true);
    reference.run_in_fp32(Write::kReplace, true);
    const double pixels = static_cast<double>(6 * shape.out_size() / shape.out_channels);
    expect_close(convolution.y, reference.y, std::sqrt(static_cast<double>(shape.fan_in())));
    expect_close(convolution.dx, reference.dx,
                 std::sqrt(static_cast<double>(shape.out_channels * shape.fan_in())));
    expect_close(convolution.dweights, reference.dweights, std::sqrt(pixels));
  }
}

TEST_F(Bf16Kernels, BitsOfConvolutionsDependOnTheOperandsAlone) {
  std::mt19937_64 rng(test::seed());
  const Convolution convolution(convolutions()[1], 8, random_operand, rng);
  const auto results = [&] {
    Convolution c = convolution;
    c.run(Write::kAdd, true);
    Bits all;
    for (const Operand* result : {&c.y, &c.dx, &c.dweights}) {
      const Bits more = bits(result->values());
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  test::expect_same_bits(results, [] {
    std::mt19937_64 any(2);
    Convolution(convolutions()[2], 3, random_operand, any).run(Write::kReplace, false);
  });
}

TEST_F(Bf16Kernels, NoThreadsAreGainedByConvolutions) {
  test::expect_no_threads_gained([] {
    std::mt19937_64 rng(test::seed());
    Convolution(convolutions()[1], 8, random_operand, rng).run(Write::kAdd, true);
  });
}

}  // namespace
}  // namespace lockstep::bf16_convolution_test
