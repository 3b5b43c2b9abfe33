// The kernels that are not convolutions, with whichever back end the build has.
#include "lockstep/math/kernels.h"

#include "lockstep/math/attention.h"
#include "support/kernel_operands.h"
#include "support/seed.h"

namespace lockstep::test::kernels_test {

constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();

struct ProductShape {
  Index rows, out, in;
};

// x(rows x in), w(out x in), y(rows x out), bias(out), all random.
struct Product {
  Product(const ProductShape& s, std::mt19937_64& rng)
      : shape(s), x(s.rows, s.in, rng), w(s.out, s.in, rng), y(s.rows, s.out, rng), bias(1, s.out, rng) {}

  void forward() {
    Matrix result = y.matrix();
    multiply_forward(x.view(), w.view(), bias.values(), result);
  }
  void backward_data() {
    Matrix result = x.matrix();
    multiply_backward_data(y.view(), w.view(), result);
  }
  void backward_weights(Write write) {
    Matrix result = w.matrix();
    const Index middle = result.rows() / 3;  // the rows of dw in two parts, the later one first
    multiply_backward_weights(y.view(), x.view(), {middle, result.rows()}, result, write);
    if (middle > 0) multiply_backward_weights(y.view(), x.view(), {0, middle}, result, write);
  }

  // Calls visit(row, out, in) for each term of the three products.
  template <class Visit>
  void for_each_term(const Visit& visit) const {
    for (Index row = 0; row < shape.rows; ++row)
      for (Index out = 0; out < shape.out; ++out)
        for (Index in = 0; in < shape.in; ++in) visit(row, out, in);
  }
  Index x_at(Index row, Index in) const { return row * shape.in + in; }
  Index w_at(Index out, Index in) const { return out * shape.in + in; }
  Index y_at(Index row, Index out) const { return row * shape.out + out; }
  ProductShape shape;
  Operand x, w, y, bias;
};

std::vector<ProductShape> shapes(std::mt19937_64& rng) {
  std::vector<ProductShape> all = {
      {1, 1, 1},      {1, 10, 784},  {64, 10, 128},  {64, 256, 784}, {3, 1, 100},   {64, 1, 1},
      {0, 3, 4},      {17, 33, 65},  {15, 70, 33},   {16, 64, 33},   {16, 65, 33},  {128, 513, 33},
      {129, 520, 33}, {7, 10, 1030}, {5, 128, 1024}, {5, 129, 1024}, {5, 128, 1023}};
  std::uniform_int_distribution<Index> size(1, 90);
  for (int i = 0; i < 30; ++i) all.push_back({size(rng), size(rng), size(rng)});
  return all;
}

// A product of each shape, with the shape named in failures.
void for_each_product(const std::function<void(Product&)>& test) {
  std::mt19937_64 rng(seed());
  for (const ProductShape& s : shapes(rng)) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.out << " x " << s.in);
    Product product(s, rng);
    test(product);
  }
}

TEST(Products, ForwardIsXTimesWTransposedAndABias) {
  for_each_product([](Product& p) {
    Sums sums(p.y.view().size());
    for (Index i = 0; i < p.y.view().size(); ++i) sums.add(i, p.bias[i % p.shape.out]);
    p.for_each_term([&](Index row, Index out, Index in) {
      sums.add(p.y_at(row, out), static_cast<double>(p.x[p.x_at(row, in)]) * p.w[p.w_at(out, in)]);
    });
    p.forward();
    sums.expect_near(p.y.values());
  });
}

TEST(Products, ForwardTakesNoBiasToo) {
  for_each_product([](Product& p) {
    std::ranges::fill(p.bias.values(), Scalar{0});
    p.forward();
    const Operand with_zeros = p.y;
    Matrix y = p.y.matrix();
    multiply_forward(p.x.view(), p.w.view(), {}, y);
    EXPECT_EQ(bits(p.y.values()), bits(with_zeros.values()));
  });
}

TEST(Products, BackwardDataIsDyTimesW) {
  for_each_product([](Product& p) {
    Sums sums(p.x.view().size());
    p.for_each_term([&](Index row, Index out, Index in) {
      sums.add(p.x_at(row, in), static_cast<double>(p.y[p.y_at(row, out)]) * p.w[p.w_at(out, in)]);
    });
    p.backward_data();
    sums.expect_near(p.x.values());
  });
}

TEST(Products, BackwardWeightsReplaceOrAddDyTransposedTimesX) {
  for_each_product([](Product& p) {
    Sums sums(p.w.view().size()), sums_and_before(p.w.view().size());
    for (Index i = 0; i < p.w.view().size(); ++i) sums_and_before.add(i, p.w[i]);
    p.for_each_term([&](Index row, Index out, Index in) {
      const double term = static_cast<double>(p.y[p.y_at(row, out)]) * p.x[p.x_at(row, in)];
      sums.add(p.w_at(out, in), term);
      sums_and_before.add(p.w_at(out, in), term);
    });
    p.backward_weights(Write::kAdd);
    sums_and_before.expect_near(p.w.values());
    p.w[0] = kNan;  // what was there before does not matter
    p.backward_weights(Write::kReplace);
    sums.expect_near(p.w.values());
  });
}

TEST(AttentionShape, AQuerySeesAKeyThatSeesIt) {
  for (const bool causal : {false, true}) {
    for (const Index window : {0, 1, 3, 9}) {
      const AttentionShape shape{.causal = causal, .window = window};
      for (Index length = 0; length <= 7; ++length) {
        for (Index query = 0; query < 7; ++query) {
          for (Index key = 0; key < 7; ++key) {
            const Index distance = query - key;
            const bool near = window == 0 || std::abs(distance) < window;
            const bool sees = std::max(query, key) < length && near && !(causal && distance < 0);
            EXPECT_EQ(shape.seen_by(query, length).contains(key), sees) << query << key << length << window;
            EXPECT_EQ(shape.seeing(key, length).contains(query), sees) << query << key << length << window;
          }
        }
      }
    }
  }
}

TEST(Products, PackedMatrixMultipliesAnyNumberOfRowsAndTakesAnotherShape) {
  PackedMatrix packed;
  for_each_product([&](Product& p) {
    const auto [rows, out, in] = p.shape;
    if (rows == 0) return;
    packed.pack(p.x.view());  // of all samples
    Operand dy_t(out, rows);
    transpose(p.y.view(), &dy_t[0], rows);
    for (const Index first : {Index{0}, out / 2}) {
      Operand product(out - first, in);
      Matrix result = product.matrix();
      packed.multiply({&dy_t[first * rows], out - first, rows}, result);
      Sums sums(product.view().size());
      p.for_each_term([&, in = in](Index row, Index o, Index i) {
        if (o < first) return;
        sums.add((o - first) * in + i, static_cast<double>(p.y[p.y_at(row, o)]) * p.x[p.x_at(row, i)]);
      });
      sums.expect_near(product.values());
    }
  });
}

TEST(Products, TransposedRowsStandAStrideApart) {
  for_each_product([](Product& p) {
    const Index stride = p.shape.rows + 3;
    Operand turned(p.shape.out, stride);
    transpose(p.y.view(), turned.matrix().data(), stride);
    for (Index row = 0; row < p.shape.rows; ++row)
      for (Index out = 0; out < p.shape.out; ++out)
        ASSERT_EQ(turned[out * stride + row], p.y[p.y_at(row, out)]);
    for (Index out = 0; out < p.shape.out; ++out) ASSERT_EQ(turned[out * stride + p.shape.rows], 0);
  });
}

TEST(Products, BitsDependOnTheOperandsAlone) {
  std::mt19937_64 rng(seed());
  const Product original({64, 256, 784}, rng), few_units({64, 10, 1024}, rng);
  const auto results = [&] {
    Product p = original, few = few_units;
    p.backward_weights(Write::kAdd);
    p.forward();
    p.backward_data();
    few.backward_data();
    return bits({&p.w, &p.y, &p.x, &few.x});
  };
  expect_same_bits(results, [] {
    std::mt19937_64 any(2);
    Product other({3, 100, 2000}, any);
    other.forward();
    other.backward_data();
    other.backward_weights(Write::kReplace);
  });
}

TEST(Products, BitsDoNotDependOnTheAddress) {
  std::mt19937_64 rng(seed());
  Product p({33, 130, 257}, rng);
  p.forward();
  const Bits first = bits(p.y.values());
  for (Index shift = kAlignment; shift <= 8 * kAlignment; shift += kAlignment) {
    Operand x(1, p.x.view().size() + shift), w(1, p.w.view().size() + shift);
    Operand bias(1, p.shape.out + shift);
    std::ranges::copy(p.x.values(), x.values().begin() + shift);
    std::ranges::copy(p.w.values(), w.values().begin() + shift);
    std::ranges::copy(p.bias.values(), bias.values().begin() + shift);
    Matrix y = p.y.matrix();
    multiply_forward({&x[shift], p.shape.rows, p.shape.in}, {&w[shift], p.shape.out, p.shape.in},
                     bias.values().subspan(static_cast<std::size_t>(shift)), y);
    EXPECT_EQ(bits(p.y.values()), first) << shift;
  }
}

TEST(Products, NoThreadsAreGained) {
  expect_no_threads_gained([] {
    std::mt19937_64 rng(seed());
    Product p({64, 256, 784}, rng);
    p.forward();
    p.backward_data();
    p.backward_weights(Write::kAdd);
  });
}

TEST(Products, NanTimesZeroIsNotHidden) {
  for_each_product([](Product& p) {
    const auto [rows, out, in] = p.shape;
    if (rows == 0) return;
    std::ranges::fill(p.w.values(), Scalar{0});
    p.x[p.x_at(rows - 1, in / 2)] = kNan;
    p.forward();
    for (Index i = 0; i < rows * out; ++i) ASSERT_EQ(std::isnan(p.y[i]), i / out == rows - 1) << i;
    std::ranges::fill(p.y.values(), Scalar{0});
    p.backward_weights(Write::kReplace);
    for (Index i = 0; i < out * in; ++i) ASSERT_EQ(std::isnan(p.w[i]), i % in == in / 2) << i;
    std::ranges::fill(p.w.values(), Scalar{0});
    p.w[p.w_at(out / 2, in - 1)] = std::numeric_limits<Scalar>::infinity();
    p.backward_data();
    for (Index i = 0; i < rows * in; ++i) ASSERT_EQ(std::isnan(p.x[i]), i % in == in - 1) << i;
  });
}

TEST(Rows, BiasIsAddedToEachAndSumsRunOverAll) {
  std::mt19937_64 rng(seed());
  Operand m(9, 21, rng);
  const Operand bias(1, 21, rng), before = m;
  Matrix matrix = m.matrix();
  add_to_rows(bias.values(), matrix);
  for (Index i = 0; i < m.view().size(); ++i) EXPECT_EQ(m[i], before[i] + bias[i % 21]);
  Operand sums(1, 21, rng);
  Sums added(21);
  for (Index c = 0; c < 21; ++c) added.add(c, sums[c]);
  Sums replaced(21);
  for (Index i = 0; i < m.view().size(); ++i) {
    added.add(i % 21, m[i]);
    replaced.add(i % 21, m[i]);
  }
  sum_rows(m.view(), sums.values(), Write::kAdd);
  added.expect_near(sums.values());
  sum_rows(m.view(), sums.values(), Write::kReplace);
  replaced.expect_near(sums.values());
}

TEST(Values, OneThatIsNotFiniteIsFound) {
  std::array<Scalar, 3> values = {1, -6, 3};
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_within(values, 6));
  EXPECT_FALSE(all_within(values, 5));
  values = {1, kNan, 3};
  EXPECT_FALSE(all_finite(values));
  EXPECT_FALSE(all_within(values, 1e30F));
}

TEST(BackEnd, HasANameAndAVersion) {
  EXPECT_TRUE(kernel_back_end().starts_with("oneDNN ") || kernel_back_end().starts_with("Eigen "))
      << kernel_back_end();
}

}  // namespace lockstep::test::kernels_test
