// The main of every test program.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "lockstep/math/kernels.h"
#include "support/seed.h"

namespace lockstep::test {
namespace {
std::uint64_t the_seed = 0;
}
std::uint64_t seed() {
  return the_seed;
}
}  // namespace lockstep::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  lockstep::fix_kernel_settings();
  lockstep::test::the_seed = std::random_device{}();
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      lockstep::test::the_seed = std::strtoull(argv[i] + 7, nullptr, 10);
  }
  std::printf("random seed: --seed=%llu\n", static_cast<unsigned long long>(lockstep::test::the_seed));
  return RUN_ALL_TESTS();
}
