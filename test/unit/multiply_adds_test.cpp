// The loop that tells how many multiply-adds the cores can make. Its flags are its own: without them it would
// count separate multiplications and additions, and kernels would seem to do more than the cores can.
#include "train/bench/multiply_adds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::multiply_adds_test {
namespace {

TEST(MultiplyAdds, AreFusedWhereTheCpuDoesThat) {
#ifndef __FMA__
  GTEST_SKIP() << "this build is for CPUs without fused multiply-adds";
#else
  constexpr Index kRounds = 3;
  constexpr Scalar kStart = 0.9F;
  constexpr Scalar kFactor = 0.37F;
  constexpr Scalar kTerm = 0.21F;
  Scalar fused = kStart;
  Scalar separate = kStart;
  for (Index round = 0; round < kRounds; ++round) {
    fused = std::fma(fused, kFactor, kTerm);
    volatile Scalar product = separate * kFactor;
    separate = product + kTerm;
  }
  ASSERT_NE(fused, separate) << "these numbers tell nothing";
  EXPECT_EQ(multiply_and_add(kRounds, kStart, kFactor, kTerm), fused);
#endif
}

}  // namespace
}  // namespace lockstep::multiply_adds_test
