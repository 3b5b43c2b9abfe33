// Rounding to bf16, and products in it, with whichever back end the build has.
#include "support/bf16_operands.h"
#include "support/seed.h"

namespace lockstep::bf16_test {

using namespace test;

Scalar rounded(Scalar value) {
  Bf16 result{};
  round_to_bf16({&value, 1}, {&result, 1});
  return widen(result);
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  constexpr Scalar kStep = 0x1p-7F;  // between neighbours from 1 to 2
  EXPECT_EQ(rounded(1 + kStep), 1 + kStep);
  EXPECT_EQ(rounded(1 + 0.49F * kStep), 1.0F);
  EXPECT_EQ(rounded(1 + 0.51F * kStep), 1 + kStep);
  EXPECT_EQ(rounded(1 + 0.5F * kStep), 1.0F);
  EXPECT_EQ(rounded(1 + 1.5F * kStep), 1 + 2 * kStep);
  EXPECT_EQ(rounded(-1 - 1.5F * kStep), -1 - 2 * kStep);
  EXPECT_EQ(rounded(3.14159265F), 3.140625F);
  EXPECT_TRUE(std::signbit(rounded(-0.0F)));
  EXPECT_EQ(rounded(0x1p-133F), 0x1p-133F) << "the smallest";
}

TEST(Bf16, KeepsWhatIsNoNumber) {
  constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
  EXPECT_EQ(rounded(kInfinity), kInfinity);
  EXPECT_EQ(rounded(-kInfinity), -kInfinity);
  EXPECT_EQ(rounded(std::numeric_limits<Scalar>::max()), kInfinity);
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<Scalar>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<Scalar>(0x7f800001U)))) << "a NaN in the lower half alone";
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<Scalar>(0xffffffffU)))) << "rounding must not carry";
}

TEST(Bf16, RoundsEveryElementOfAnyLength) {
  std::mt19937_64 rng(test::seed());
  for (const Index size : {0, 1, 15, 16, 33, 1000}) {
    const Operand values(1, size, rng);
    std::vector<Bf16> all(static_cast<std::size_t>(size));
    round_to_bf16(values.values(), all);
    for (Index i = 0; i < size; ++i) EXPECT_EQ(widen(at(all, i)), rounded(values[i]));
  }
}

struct ProductShape {
  Index rows, out, in;
};

constexpr ProductShape kProducts[] = {{1, 1, 1}, {64, 256, 784}, {64, 10, 128}, {3, 1, 100}, {64, 1, 1},
                                      {0, 3, 4}, {17, 33, 65},   {2, 90, 7},    {128, 64, 2}};

struct Product {
  Product(const ProductShape& s, const MakeOperand& make, std::mt19937_64& rng)
      : x(make(s.rows, s.in, rng)),
        w(make(s.out, s.in, rng)),
        dy(make(s.rows, s.out, rng)),
        bias(make(1, s.out, rng).wide),
        y(s.rows, s.out),
        dx(s.rows, s.in),
        dw(make(s.out, s.in, rng).wide) {}

  void run(Write write) {
    Matrix y_matrix = y.matrix(), dx_matrix = dx.matrix(), dw_matrix = dw.matrix();
    multiply_forward(x.view(), w.view(), bias.values(), y_matrix);
    multiply_backward_data(dy.view(), w.view(), dx_matrix);
    const Index middle = dw_matrix.rows() / 2;  // in pieces, as layers do
    multiply_backward_weights(dy.view(), x.view(), {middle, dw_matrix.rows()}, dw_matrix, write);
    if (middle > 0) multiply_backward_weights(dy.view(), x.view(), {0, middle}, dw_matrix, write);
  }

  void run_in_fp32(Write write) {
    Matrix y_matrix = y.matrix(), dx_matrix = dx.matrix(), dw_matrix = dw.matrix();
    multiply_forward(x.wide.view(), w.wide.view(), bias.values(), y_matrix);
    multiply_backward_data(dy.wide.view(), w.wide.view(), dx_matrix);
    multiply_backward_weights(dy.wide.view(), x.wide.view(), {0, dw_matrix.rows()}, dw_matrix, write);
  }
  RoundedOperand x, w, dy;
  Operand bias, y, dx, dw;
};

TEST_F(Bf16Kernels, ProductsOfWholeNumbersAreExact) {
  std::mt19937_64 rng(test::seed());
  for (const ProductShape& s : kProducts)
    for (const Write write : {Write::kReplace, Write::kAdd}) {
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.out << " x " << s.in);
      Product product(s, test::whole_numbers, rng), reference = product;
      product.run(write);
      reference.run_in_fp32(write);
      expect_equal(product.y, reference.y, "forward");
      expect_equal(product.dx, reference.dx, "backward data");
      expect_equal(product.dw, reference.dw, "backward weights");
    }
}

// Only operands are rounded: against the same numbers in double the sums are as good as those of fp32.
TEST_F(Bf16Kernels, SumsOfProductsAreInFp32) {
  std::mt19937_64 rng(test::seed());
  for (const ProductShape& s : kProducts) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.out << " x " << s.in);
    Product p(s, random_operand, rng);
    Sums y(s.rows * s.out), dx(s.rows * s.in), dw(s.out * s.in);
    for (Index row = 0; row < s.rows; ++row)
      for (Index out = 0; out < s.out; ++out) {
        y.add(row * s.out + out, p.bias[out]);
        for (Index in = 0; in < s.in; ++in) {
          const double left = p.x.wide[row * s.in + in], weight = p.w.wide[out * s.in + in];
          const double gradient = p.dy.wide[row * s.out + out];
          y.add(row * s.out + out, left * weight);
          dx.add(row * s.in + in, gradient * weight);
          dw.add(out * s.in + in, gradient * left);
        }
      }
    p.run(Write::kReplace);
    y.expect_near(p.y.values());
    dx.expect_near(p.dx.values());
    dw.expect_near(p.dw.values());
  }
}

TEST_F(Bf16Kernels, BitsOfProductsDependOnTheOperandsAlone) {
  std::mt19937_64 rng(test::seed());
  const Product product({64, 256, 200}, random_operand, rng);
  const auto results = [&] {
    Product p = product;
    p.run(Write::kAdd);
    return bits({&p.y, &p.dx, &p.dw});
  };
  test::expect_same_bits(results, [] {
    std::mt19937_64 any(2);
    Product({3, 100, 2000}, random_operand, any).run(Write::kReplace);
  });
}

TEST_F(Bf16Kernels, NoThreadsAreGainedByProducts) {
  test::expect_no_threads_gained([] {
    std::mt19937_64 rng(test::seed());
    Product({64, 128, 300}, random_operand, rng).run(Write::kAdd);
  });
}

TEST_F(Bf16Kernels, NanTimesZeroIsNotHidden) {
  std::mt19937_64 rng(test::seed());
  Operand x(4, 20);
  x[2 * 20 + 5] = std::numeric_limits<Scalar>::quiet_NaN();
  const RoundedOperand with_nan(x), zeros{Operand(7, 20)};
  Operand y(4, 7, rng);
  Matrix result = y.matrix();
  multiply_forward(with_nan.view(), zeros.view(), {}, result);
  for (Index i = 0; i < 28; ++i) EXPECT_EQ(std::isnan(y[i]), i / 7 == 2) << i;
}

}  // namespace lockstep::bf16_test
