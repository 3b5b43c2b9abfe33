#include "support/kernel_operands.h"

#include <barrier>

namespace lockstep::test {
namespace {

std::ptrdiff_t count_threads() {
  using Iterator = std::filesystem::directory_iterator;
  return std::distance(Iterator("/proc/self/task"), Iterator());
}

}  // namespace

Operand::Operand(Index rows, Index columns, std::mt19937_64& rng) : Operand(rows, columns) {
  std::uniform_real_distribution<Scalar> uniform(-1, 1);
  for (Scalar& value : values()) value = uniform(rng);
}

Operand::Operand(const Operand& other) : Operand(other.rows_, other.columns_) {
  std::ranges::copy(other.values(), values().begin());
}

void Sums::add(Index i, double term) {
  at(sums_, i) += term;
  at(magnitudes_, i) += std::abs(term);
}

void Sums::expect_near(std::span<const Scalar> found) const {
  constexpr double kRounding = 2e-6;
  ASSERT_EQ(found.size(), sums_.size());
  for (std::size_t i = 0; i < sums_.size(); ++i)
    ASSERT_NEAR(found[i], sums_[i], kRounding * magnitudes_[i]) << "at " << i << " of " << sums_.size();
}

Bits bits(std::span<const Scalar> values) {
  Bits all;
  for (const Scalar value : values) all.push_back(std::bit_cast<std::uint32_t>(value));
  return all;
}

Bits bits(std::initializer_list<const Operand*> operands) {
  Bits all;
  for (const Operand* operand : operands) std::ranges::copy(bits(operand->values()), std::back_inserter(all));
  return all;
}

ConvolutionShape square(Index side, Index in, Index out, const Window& window, Index groups) {
  return {.in_height = side,
          .in_width = side,
          .in_channels = in,
          .out_channels = out,
          .vertical = window,
          .horizontal = window,
          .groups = groups};
}

std::vector<ConvolutionShape> usual_convolutions() {
  const Window three{.size = 3, .pad_before = 1, .pad_after = 1};
  const Window halving{.size = 3, .stride = 2, .pad_before = 0, .pad_after = 1};
  const Window uneven{.size = 2, .stride = 3, .pad_before = 1, .pad_after = 0};
  return {square(28, 1, 6, three),
          square(8, 16, 32, three),
          square(9, 16, 16, halving),
          square(6, 32, 16, {}),
          square(7, 16, 32, {.size = 1, .stride = 2}),
          square(8, 24, 24, three, 24),
          square(8, 3, 3, halving, 3),
          square(6, 4, 12, three, 4),
          square(5, 7, 11, {.size = 5}),
          square(9, 5, 9, {.size = 3, .dilation = 2}),
          square(8, 32, 32, three, 2),
          square(4, 64, 48, three),
          square(1, 10, 5, {}),
          square(9, 4, 6, uneven, 2)};
}

void expect_same_bits(const std::function<Bits()>& results, const std::function<void()>& others) {
  const Bits first = results();
  others();
  EXPECT_EQ(results(), first) << "a second time";
  Bits left;
  Bits right;
  {
    const std::jthread on_left([&] { left = results(); });
    const std::jthread on_right([&] {
      others();
      right = results();
    });
  }
  EXPECT_EQ(left, first) << "on another thread";
  EXPECT_EQ(right, first) << "on another thread, after other calls";
}

void expect_no_threads_gained(const std::function<void()>& calls) {
  const std::ptrdiff_t before = count_threads();
  calls();
  EXPECT_EQ(count_threads(), before);
  constexpr std::ptrdiff_t kThreads = 2;
  std::barrier<> done(kThreads + 1);
  const auto work = [&] {
    calls();
    done.arrive_and_wait();  // all have called
    done.arrive_and_wait();  // and have been counted
  };
  const std::jthread left(work);
  const std::jthread right(work);
  done.arrive_and_wait();
  EXPECT_EQ(count_threads(), before + kThreads);
  done.arrive_and_wait();
}

}  // namespace lockstep::test
