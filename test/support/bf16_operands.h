// Operands in bf16 for tests of kernels.
#pragma once

#include "lockstep/math/kernels.h"
#include "support/common.h"
#include "support/kernel_operands.h"

namespace lockstep::test {

/// A matrix in bf16, and the same numbers in fp32.
struct RoundedOperand {
  explicit RoundedOperand(const Operand& operand);

  Bf16Matrix view() const { return {values.data(), wide.view().rows(), wide.view().cols()}; }

  Operand wide;
  std::vector<Bf16> values;
};

using MakeOperand = std::function<RoundedOperand(Index rows, Index columns, std::mt19937_64& rng)>;
/// In [-1, 1].
RoundedOperand random_operand(Index rows, Index columns, std::mt19937_64& rng);
/// Small whole numbers: every sum of their products is exact, in any order.
RoundedOperand whole_numbers(Index rows, Index columns, std::mt19937_64& rng);

/// Numerically, so that 0 is -0.
void expect_equal(const Operand& found, const Operand& expected, const char* what);

class Bf16Kernels : public testing::Test {
 protected:
  void SetUp() override {
    if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << kernel_back_end() << " has no bf16";
  }
};

}  // namespace lockstep::test
