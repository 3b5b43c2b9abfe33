// Two small runs that must have the same bits.
#pragma once

#include "support/common.h"
#include "support/tiny_run.h"

namespace lockstep::test {

/// Weights, running moments, losses and evaluations, on the rank that has them.
inline void expect_same_bits(const TinyResult& found, const TinyResult& expected, Communicator& comm) {
  if (comm.rank() != 0) return;
  EXPECT_TRUE(found.weights == expected.weights);
  EXPECT_TRUE(found.state == expected.state);
  EXPECT_TRUE(found.losses == expected.losses);
  ASSERT_EQ(found.evaluations.size(), expected.evaluations.size());
  for (std::size_t i = 0; i < found.evaluations.size(); ++i) {
    EXPECT_EQ(found.evaluations[i].loss, expected.evaluations[i].loss);
    EXPECT_EQ(found.evaluations[i].confusion, expected.evaluations[i].confusion);
  }
}

}  // namespace lockstep::test
