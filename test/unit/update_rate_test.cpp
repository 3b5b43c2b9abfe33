// The memory that the yardstick of trainer bench counts for an update.
#include <gtest/gtest.h>

#include "lockstep/train/bench/bench.h"

namespace lockstep::update_rate_test {
namespace {

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

}  // namespace
}  // namespace lockstep::update_rate_test
