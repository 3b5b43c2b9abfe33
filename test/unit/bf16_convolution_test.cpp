// Convolutions in bf16, with whichever back end the build has, against those in fp32 on the same numbers.
#include "lockstep/math/convolution.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/bf16_operands.h"
#include "support/seed.h"

namespace lockstep::bf16_convolution_test {

using namespace test;

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
    Matrix y_matrix = y.matrix(), dx_matrix = dx.matrix();
    convolution_forward(shape, x.view(), {.values = weights.values},
                        biased ? bias.values() : std::span<Scalar>(), y_matrix);
    convolution_backward_data(shape, dy.view(), {.values = weights.values}, dx_matrix);
    convolution_backward_weights(shape, x.view(), dy.view(), dweights.values(), write);
  }

  void run_in_fp32(Write write, bool biased) {
    Matrix y_matrix = y.matrix(), dx_matrix = dx.matrix();
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
  for (const ConvolutionShape& shape : usual_convolutions())
    for (const Index rows : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message()
                   << rows << " rows of " << shape.in_height << "^2 x " << shape.in_channels << " to "
                   << shape.out_channels << ", groups " << shape.groups << ", size " << shape.vertical.size);
      Convolution convolution(shape, rows, test::whole_numbers, rng), reference = convolution;
      const Write write = rows == 5 ? Write::kAdd : Write::kReplace;
      convolution.run(write, rows == 1);
      reference.run_in_fp32(write, rows == 1);
      expect_equal(convolution.y, reference.y, "forward");
      expect_equal(convolution.dx, reference.dx, "backward data");
      expect_equal(convolution.dweights, reference.dweights, "backward weights");
    }
}

void expect_close(const Operand& found, const Operand& expected, double scale) {
  const auto difference = (as_array(found.view()) - as_array(expected.view())).abs();
  EXPECT_LE(difference.size() == 0 ? 0.0 : static_cast<double>(difference.maxCoeff()), 1e-5 * scale);
}

TEST_F(Bf16Kernels, SumsOfConvolutionsAreInFp32) {
  std::mt19937_64 rng(test::seed());
  for (const ConvolutionShape& shape : usual_convolutions()) {
    Convolution convolution(shape, 6, random_operand, rng), reference = convolution;
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
  const Convolution convolution(usual_convolutions()[1], 8, random_operand, rng);
  const auto results = [&] {
    Convolution c = convolution;
    c.run(Write::kAdd, true);
    return bits({&c.y, &c.dx, &c.dweights});
  };
  test::expect_same_bits(results, [] {
    std::mt19937_64 any(2);
    Convolution(usual_convolutions()[2], 3, random_operand, any).run(Write::kReplace, false);
  });
}

TEST_F(Bf16Kernels, NoThreadsAreGainedByConvolutions) {
  test::expect_no_threads_gained([] {
    std::mt19937_64 rng(test::seed());
    Convolution(usual_convolutions()[1], 8, random_operand, rng).run(Write::kAdd, true);
  });
}

}  // namespace lockstep::bf16_convolution_test
