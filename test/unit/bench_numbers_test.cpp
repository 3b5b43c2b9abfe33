// What trainer bench computes from what it measures, and the yardsticks that it measures by.
#include "lockstep/train/bench/bench.h"

#include "lockstep/report/tables/tables.h"
#include "support/error_text.h"
#include "train/bench/multiply_adds.h"

namespace lockstep::bench_numbers_test {

// Of four ranks, each sends and receives 1.5 times the bytes of a sum. To copy them, each is read and
// written: 3 GB/s, of which a copy of 1,500,000 bytes takes 3,000,000, take a millisecond.
TEST(BenchReport, ASumIsHeldAgainstACopyOfWhatEachRankSendsAndReceives) {
  BenchReport report;
  report.ranks = 4;
  report.machine.memory_bandwidth = 3e9;
  report.exchanges = {{.bytes = 1'000'000, .seconds = 4e-3}};
  report.algorithms = {{.name = "ring", .bytes = 1'000'000, .seconds = 4e-3}};
  test::expect_parts(to_text(report),
                     {"4000.0 us     0.25 GB/s   25 %", "ring         limit\n", "4000.0        1000.0\n"});
}

// Each rank has a share of the gradients of all, and of the weights and their velocity, which it reads and
// writes: together they read every gradient, and step once on every weight.
TEST(UpdateRate, RanksShareWhatAnUpdateReadsAndWrites) {
  const UpdateRate update{.name = "", .weights = 1 << 20};
  const auto bytes = static_cast<double>(update.weights * Index{sizeof(Scalar)});
  for (const Index ranks : {1, 2, 4, 32}) {
    const auto gradients = static_cast<double>(ranks);
    EXPECT_DOUBLE_EQ(static_cast<double>(ranks) * update.least_bytes(ranks), (gradients + 2 + 2) * bytes)
        << ranks << " ranks";
  }
}

// The loop that tells how many multiply-adds the cores can make. Its flags are its own: without them it would
// count separate multiplications and additions, and kernels would seem to do more than the cores can.
TEST(MultiplyAdds, AreFusedWhereTheCpuDoesThat) {
#ifndef __FMA__
  GTEST_SKIP() << "this build is for CPUs without fused multiply-adds";
#else
  constexpr Index kRounds = 3;
  constexpr Scalar kStart = 0.9F;
  constexpr Scalar kFactor = 0.37F;
  constexpr Scalar kTerm = 0.21F;
  Scalar fused = kStart, separate = kStart;
  for (Index round = 0; round < kRounds; ++round) {
    fused = std::fma(fused, kFactor, kTerm);
    volatile Scalar product = separate * kFactor;
    separate = product + kTerm;
  }
  ASSERT_NE(fused, separate) << "these numbers tell nothing";
  EXPECT_EQ(multiply_and_add(kRounds, kStart, kFactor, kTerm), fused);
#endif
}

}  // namespace lockstep::bench_numbers_test
