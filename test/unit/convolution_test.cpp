// Convolution, with whichever back end the build has, against plain loops in double.
#include "lockstep/math/convolution.h"

#include "support/kernel_operands.h"
#include "support/seed.h"

namespace lockstep::test::convolution_test {

constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();

std::string text(const Window& w) {
  return testing::PrintToString(w.size) + " stride " + testing::PrintToString(w.stride) + " dilation " +
         testing::PrintToString(w.dilation) + " pad " + testing::PrintToString(w.pad_before) + "+" +
         testing::PrintToString(w.pad_after);
}

std::string text(const ConvolutionShape& s) {
  testing::Message message;
  message << s.in_height << "x" << s.in_width << "x" << s.in_channels << " to " << s.out_channels
          << " groups " << s.groups << ", vertical " << text(s.vertical) << ", horizontal "
          << text(s.horizontal);
  return message.GetString();
}

struct Convolution {
  Convolution(const ConvolutionShape& s, Index n, std::mt19937_64& rng)
      : shape(s),
        rows(n),
        x(n, s.in_size(), rng),
        y(n, s.out_size(), rng),
        weights(1, s.weight_count(), rng),
        bias(1, s.out_channels, rng) {}

  void forward() {
    Matrix result = y.matrix();
    convolution_forward(shape, x.view(), {.values = weights.values()}, bias.values(), result);
  }
  void backward_data() {
    Matrix result = x.matrix();
    convolution_backward_data(shape, y.view(), {.values = weights.values()}, result);
  }
  void backward_weights(Write write) {
    convolution_backward_weights(shape, x.view(), y.view(),
                                 {.weights = weights.values(), .bias = bias.values(), .write = write});
  }

  // Calls visit(x, weight, y), the places of the factors and of the sum, for each term of the convolution.
  void for_each_term(const std::function<void(Index, Index, Index)>& visit) const {
    for (Index row = 0; row < rows; ++row)
      for (Index out_y = 0; out_y < shape.out_height(); ++out_y)
        for (Index out_x = 0; out_x < shape.out_width(); ++out_x)
          for (Index out = 0; out < shape.out_channels; ++out) visit_taps(row, {out_y, out_x, out}, visit);
  }

  struct Output {
    Index y, x, channel;
  };
  void visit_taps(Index row, const Output& out, const std::function<void(Index, Index, Index)>& visit) const {
    const ConvolutionShape& s = shape;
    const Index group_in = s.in_channels / s.groups, group = out.channel / (s.out_channels / s.groups);
    const Index out_at = row * s.out_size() + (out.y * s.out_width() + out.x) * s.out_channels + out.channel;
    for (Index in = 0; in < group_in; ++in)
      for (Index i = 0; i < s.vertical.size; ++i)
        for (Index j = 0; j < s.horizontal.size; ++j) {
          const Index y_in = out.y * s.vertical.stride + i * s.vertical.dilation - s.vertical.pad_before;
          const Index x_in =
              out.x * s.horizontal.stride + j * s.horizontal.dilation - s.horizontal.pad_before;
          if (y_in < 0 || y_in >= s.in_height || x_in < 0 || x_in >= s.in_width) continue;
          visit(row * s.in_size() + (y_in * s.in_width + x_in) * s.in_channels + group * group_in + in,
                ((out.channel * group_in + in) * s.vertical.size + i) * s.horizontal.size + j, out_at);
        }
  }
  ConvolutionShape shape;
  Index rows;
  Operand x, y, weights, bias;
};

Index draw(std::mt19937_64& rng, std::initializer_list<Index> choices) {
  return choices.begin()[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(rng)];
}

Window draw_window(std::mt19937_64& rng) {
  return {.size = draw(rng, {1, 2, 3, 5}),
          .stride = draw(rng, {1, 1, 2, 3}),
          .dilation = draw(rng, {1, 1, 2}),
          .pad_before = draw(rng, {0, 1, 2}),
          .pad_after = draw(rng, {0, 1, 2})};
}

ConvolutionShape draw_shape(std::mt19937_64& rng) {
  ConvolutionShape s{.in_height = draw(rng, {3, 5, 8, 9}),
                     .in_width = draw(rng, {4, 5, 7, 9}),
                     .in_channels = draw(rng, {1, 2, 3, 5}),
                     .out_channels = draw(rng, {1, 2, 3, 7, 8}),
                     .vertical = draw_window(rng),
                     .horizontal = draw_window(rng),
                     .groups = draw(rng, {1, 1, 2, 4})};
  s.in_channels *= s.groups;
  s.out_channels *= s.groups;
  return s.out_size() > 0 ? s : draw_shape(rng);
}

std::vector<ConvolutionShape> shapes(std::mt19937_64& rng) {
  std::vector<ConvolutionShape> all = usual_convolutions();
  for (int i = 0; i < 40; ++i) all.push_back(draw_shape(rng));
  return all;
}

// A convolution of each shape, with the shape named in failures.
void for_each_convolution(const std::function<void(Convolution&)>& test) {
  std::mt19937_64 rng(seed());
  for (const ConvolutionShape& shape : shapes(rng)) {
    const Index rows = draw(rng, {1, 3, 3, 64});
    SCOPED_TRACE(testing::Message() << rows << " rows of " << text(shape));
    Convolution convolution(shape, rows, rng);
    test(convolution);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Convolution, ForwardSumsOverTheWindowAndAddsTheBias) {
  for_each_convolution([](Convolution& c) {
    Sums sums(c.y.view().size());
    c.for_each_term(
        [&](Index x, Index w, Index y) { sums.add(y, static_cast<double>(c.x[x]) * c.weights[w]); });
    Matrix y = c.y.matrix();
    convolution_forward(c.shape, c.x.view(), {.values = c.weights.values()}, {}, y);
    sums.expect_near(c.y.values());
    for (Index i = 0; i < c.y.view().size(); ++i) sums.add(i, c.bias[i % c.shape.out_channels]);
    c.forward();
    sums.expect_near(c.y.values());
  });
}

TEST(Convolution, BackwardDataIsTheTransposeOfForward) {
  for_each_convolution([](Convolution& c) {
    Sums sums(c.x.view().size());
    c.for_each_term(
        [&](Index x, Index w, Index y) { sums.add(x, static_cast<double>(c.y[y]) * c.weights[w]); });
    c.backward_data();
    sums.expect_near(c.x.values());
  });
}

TEST(Convolution, BackwardWeightsReplaceOrAddTheSumOverSamples) {
  for_each_convolution([](Convolution& c) {
    Sums weights(c.shape.weight_count()), bias(c.shape.out_channels);
    c.for_each_term([&](Index x, Index w, Index y) { weights.add(w, static_cast<double>(c.x[x]) * c.y[y]); });
    for (Index i = 0; i < c.y.view().size(); ++i) bias.add(i % c.shape.out_channels, c.y[i]);
    c.weights[0] = c.bias[0] = kNan;  // what was there before does not matter
    c.backward_weights(Write::kReplace);
    weights.expect_near(c.weights.values());
    bias.expect_near(c.bias.values());
    for (Index i = 0; i < c.shape.weight_count(); ++i) weights.add(i, c.weights[i]);
    convolution_backward_weights(c.shape, c.x.view(), c.y.view(),
                                 {.weights = c.weights.values(), .bias = {}, .write = Write::kAdd});
    weights.expect_near(c.weights.values());
    for (Index i = 0; i < c.shape.out_channels; ++i) bias.add(i, c.bias[i]);
    c.backward_weights(Write::kAdd);
    bias.expect_near(c.bias.values());
  });
}

TEST(Convolution, NoSamplesGiveNoGradient) {
  std::mt19937_64 rng(seed());
  Convolution c({.in_height = 5, .in_width = 5, .in_channels = 2, .out_channels = 3}, 0, rng);
  c.forward();
  c.backward_data();
  const Bits before = bits(c.weights.values());
  c.backward_weights(Write::kAdd);
  EXPECT_EQ(bits(c.weights.values()), before);
  c.backward_weights(Write::kReplace);
  EXPECT_EQ(bits(c.weights.values()), Bits(6));
  EXPECT_EQ(bits(c.bias.values()), Bits(3));
}

// The bits of all results on copies of the operands.
Bits results(const Convolution& original) {
  Convolution c = original;
  c.backward_weights(Write::kAdd);
  c.forward();
  c.backward_data();
  return bits({&c.weights, &c.bias, &c.y, &c.x});
}

TEST(Convolution, BitsDependOnTheOperandsAlone) {
  std::mt19937_64 rng(seed());
  const std::vector<ConvolutionShape> all = shapes(rng);
  for (std::size_t i = 0; i < 14; ++i) {
    SCOPED_TRACE(text(all[i]));
    const Convolution convolution(all[i], 16, rng), other(all[i + 1], 5, rng);
    expect_same_bits([&] { return results(convolution); }, [&] { results(other); });
  }
}

// oneDNN 2.6 wrote behind memory of its own for such shapes. Primitives go with their thread, and the C
// library then finds what they damaged.
TEST(Convolution, AStridedWindowOfOnePixelDamagesNoMemory) {
  for (const Index channels : {1, 4, 6, 7, 17}) {
    std::thread([channels] {
      std::mt19937_64 rng(seed());
      for (const Index rows : {1, 3, 7, 24}) {
        Convolution convolution(square(6, channels, 6, {.size = 1, .stride = 2}), rows, rng);
        convolution.backward_weights(Write::kReplace);
      }
    }).join();
  }
}

TEST(Convolution, NoThreadsAreGained) {
  expect_no_threads_gained([] {
    std::mt19937_64 rng(seed());
    results(Convolution(square(14, 32, 64, {.size = 3, .pad_before = 1, .pad_after = 1}), 64, rng));
  });
}

TEST(Convolution, NanTimesZeroIsNotHidden) {
  for_each_convolution([](Convolution& c) {
    std::vector<bool> y_is_nan(static_cast<std::size_t>(c.y.view().size()));
    c.for_each_term([&](Index x, Index, Index y) {
      if (x == 0) at(y_is_nan, y) = true;
    });
    std::ranges::fill(c.weights.values(), Scalar{0});
    c.x[0] = kNan;
    c.forward();
    for (Index i = 0; i < c.y.view().size(); ++i) ASSERT_TRUE(std::isnan(c.y[i]) || !at(y_is_nan, i)) << i;
    std::ranges::fill(c.y.values(), Scalar{0});
    c.y[0] = kNan;
    c.backward_weights(Write::kReplace);
    ASSERT_TRUE(std::isnan(c.bias[0]));
  });
}

}  // namespace lockstep::test::convolution_test
