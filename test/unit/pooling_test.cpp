#include "lockstep/math/pooling.h"

#include "support/kernel_operands.h"
#include "support/seed.h"

namespace lockstep::test::pooling_test {

constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();

struct Pooling {
  Pooling(const PoolingShape& s, Index n, std::mt19937_64& rng)
      : shape(s),
        rows(n),
        x(n, s.in_size(), rng),
        y(n, s.out_size(), rng),
        winners(static_cast<std::size_t>(n * s.out_size()), -1) {}

  void max_forward() {
    Matrix result = y.matrix();
    max_pool_forward(shape, x.view(), result, winners);
  }
  void max_backward() {
    Matrix result = x.matrix();
    max_pool_backward(shape, y.view(), winners, result);
  }
  void average_forward() {
    Matrix result = y.matrix();
    average_pool_forward(shape, x.view(), result);
  }
  void average_backward() {
    Matrix result = x.matrix();
    average_pool_backward(shape, y.view(), result);
  }

  // Where the scalars under the window of y[i] stand in x, in order.
  std::vector<Index> under(Index i) const {
    const PoolingShape& s = shape;
    const Index row = i / s.out_size(), channel = i % s.channels;
    const Index out_x = i % s.out_size() / s.channels % s.out_width();
    const Index out_y = i % s.out_size() / s.channels / s.out_width();
    std::vector<Index> places;
    for (Index tap_y = 0; tap_y < s.vertical.size; ++tap_y)
      for (Index tap_x = 0; tap_x < s.horizontal.size; ++tap_x) {
        const Index in_y = out_y * s.vertical.stride + tap_y * s.vertical.dilation - s.vertical.pad_before;
        const Index in_x =
            out_x * s.horizontal.stride + tap_x * s.horizontal.dilation - s.horizontal.pad_before;
        if (in_y < 0 || in_y >= s.in_height || in_x < 0 || in_x >= s.in_width) continue;
        places.push_back(row * s.in_size() + (in_y * s.in_width + in_x) * s.channels + channel);
      }
    return places;
  }
  PoolingShape shape;
  Index rows;
  Operand x, y;
  std::vector<std::int32_t> winners;
};

Index draw(std::mt19937_64& rng, Index first, Index last) {
  return std::uniform_int_distribution<Index>(first, last)(rng);
}

// Padding smaller than the window, so that no position is all padding.
Window draw_window(std::mt19937_64& rng) {
  const Index size = draw(rng, 1, 4);
  return {.size = size,
          .stride = draw(rng, 1, 3),
          .dilation = draw(rng, 1, 2),
          .pad_before = draw(rng, 0, size / 2),
          .pad_after = draw(rng, 0, size / 2)};
}

void for_each_pooling(const std::function<void(Pooling&)>& test) {
  std::mt19937_64 rng(seed());
  std::vector<PoolingShape> shapes = {
      {.in_height = 28,
       .in_width = 28,
       .channels = 32,
       .vertical = {.size = 2, .stride = 2},
       .horizontal = {.size = 2, .stride = 2}},
      {.in_height = 7, .in_width = 5, .channels = 3, .vertical = {.size = 7}, .horizontal = {.size = 5}},
      {.in_height = 4, .in_width = 4, .channels = 1}};
  for (int i = 0; i < 40; ++i) {
    shapes.push_back({.in_height = draw(rng, 7, 12),
                      .in_width = draw(rng, 7, 12),
                      .channels = draw(rng, 1, 35),
                      .vertical = draw_window(rng),
                      .horizontal = draw_window(rng)});
  }
  for (const PoolingShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.in_height << "x" << s.in_width << "x" << s.channels << " window "
                                    << s.vertical.size << "x" << s.horizontal.size << " stride "
                                    << s.vertical.stride << "," << s.horizontal.stride);
    Pooling pooling(s, draw(rng, 0, 5), rng);
    test(pooling);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(MaxPool, TakesTheFirstOfTheLargest) {
  for_each_pooling([](Pooling& p) {
    for (Scalar& value : p.x.values()) value = std::round(value * 2);  // so that many are equal
    p.max_forward();
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      const Index largest = *std::ranges::max_element(places, {}, [&](Index place) { return p.x[place]; });
      ASSERT_EQ(p.y[i], p.x[largest]);
      ASSERT_EQ(at(p.winners, i), largest % p.shape.in_size());
    }
  });
}

TEST(MaxPool, BackwardGoesToTheWinners) {
  for_each_pooling([](Pooling& p) {
    p.max_forward();
    Sums sums(p.x.view().size());
    for (Index i = 0; i < p.y.view().size(); ++i)
      sums.add(i / p.shape.out_size() * p.shape.in_size() + at(p.winners, i), p.y[i]);
    p.max_backward();
    sums.expect_near(p.x.values());
  });
}

TEST(MaxPool, PassesOnWhatIsNotFinite) {
  for_each_pooling([](Pooling& p) {
    for (Index i = 0; i < p.x.view().size(); i += 5) p.x[i] = kNan;
    for (Index i = 1; i < p.x.view().size(); i += 3) p.x[i] = -kInfinity;
    p.max_forward();
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      const bool has_nan = std::ranges::any_of(places, [&](Index place) { return std::isnan(p.x[place]); });
      ASSERT_EQ(std::isnan(p.y[i]), has_nan);
      const Index winner = i / p.shape.out_size() * p.shape.in_size() + at(p.winners, i);
      ASSERT_NE(std::ranges::find(places, winner), places.end());
    }
  });
}

// Numbers of all kinds, of which several windows have more than one.
void fill_with_all_kinds(Pooling& p) {
  constexpr Scalar kKinds[] = {kNan, kInfinity, -kInfinity, 0.0F, -0.0F, 1.5F, -1.5F, 0.1F};
  for (Index i = 0; i < p.x.view().size(); ++i) p.x[i] = kKinds[i * 7 % 11 % 8];
}

std::uint32_t bits(Scalar value) {
  return std::bit_cast<std::uint32_t>(value);
}

// However many channels are taken together: the first of the largest, or the last NaN.
TEST(MaxPool, HasTheBitsOfTakingOneByOne) {
  for_each_pooling([](Pooling& p) {
    fill_with_all_kinds(p);
    p.max_forward();
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      Index winner = places.front();
      for (const Index place : places) {
        if (p.x[place] > p.x[winner] || std::isnan(p.x[place])) winner = place;
      }
      ASSERT_EQ(bits(p.y[i]), bits(p.x[winner]));
      ASSERT_EQ(at(p.winners, i), winner % p.shape.in_size());
    }
  });
}

TEST(AveragePool, HasTheBitsOfASumOneByOne) {
  for_each_pooling([](Pooling& p) {
    for (Scalar& value : p.x.values()) value *= Scalar{1e-3F};  // so that sums are rounded
    p.average_forward();
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      Scalar sum = 0;
      for (const Index place : places) sum += p.x[place];
      ASSERT_EQ(bits(p.y[i]), bits(sum / static_cast<Scalar>(places.size())));
    }
    std::vector<Scalar> dx(static_cast<std::size_t>(p.x.view().size()), 0);
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      for (const Index place : places) at(dx, place) += p.y[i] / static_cast<Scalar>(places.size());
    }
    p.average_backward();
    for (Index i = 0; i < p.x.view().size(); ++i) ASSERT_EQ(bits(p.x[i]), bits(at(dx, i)));
  });
}

TEST(AveragePool, IsTheMeanOfWhatIsNotPadding) {
  for_each_pooling([](Pooling& p) {
    Sums sums(p.y.view().size());
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      for (const Index place : places) sums.add(i, p.x[place] / static_cast<double>(places.size()));
    }
    p.average_forward();
    sums.expect_near(p.y.values());
  });
}

TEST(AveragePool, BackwardSharesEvenly) {
  for_each_pooling([](Pooling& p) {
    Sums sums(p.x.view().size());
    for (Index i = 0; i < p.y.view().size(); ++i) {
      const std::vector<Index> places = p.under(i);
      for (const Index place : places) sums.add(place, p.y[i] / static_cast<double>(places.size()));
    }
    p.average_backward();
    sums.expect_near(p.x.values());
  });
}

TEST(AveragePool, PassesOnNan) {
  std::mt19937_64 rng(seed());
  Pooling p(
      {.in_height = 4, .in_width = 4, .channels = 2, .vertical = {.size = 4}, .horizontal = {.size = 4}}, 1,
      rng);
  p.x[7] = kNan;  // of the second channel
  p.average_forward();
  EXPECT_FALSE(std::isnan(p.y[0]));
  EXPECT_TRUE(std::isnan(p.y[1]));
}

}  // namespace lockstep::test::pooling_test
