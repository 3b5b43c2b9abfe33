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
