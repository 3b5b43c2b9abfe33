#include "lockstep/report/live/run_output.h"

#include <gtest/gtest.h>

namespace lockstep::worker_lines_test {
namespace {

using Lines = std::vector<std::string>;

// The second worker made more gradients, of fewer samples.
TEST(WorkerLines, AnEvenShareIsOneOfTheSamples) {
  WorkersReport report;
  report.workers = {{.computed = 2, .steps = 2, .samples = 3000, .staleness = {2}},
                    {.computed = 6, .steps = 6, .samples = 1000, .staleness = {6}}};
  EXPECT_EQ(worker_lines(report, 4000),
            (Lines{"staleness: mean 0.00, 95th percentile 0",
                   "worker 0: 2 gradients with 3,000 samples: 1.50 times an even share",
                   "worker 1: 6 gradients with 1,000 samples: 0.50 times an even share"}));
}

TEST(WorkerLines, DroppedGradientsAreNoneOfTheShare) {
  WorkersReport report;
  report.workers = {
      {.computed = 2, .steps = 2, .samples = 20, .staleness = {}},
      {.computed = 3, .steps = 2, .samples = 20, .dropped = 1, .dropped_samples = 10, .staleness = {}}};
  EXPECT_EQ(
      worker_lines(report, 40),
      (Lines{"dropped: 1 of 5 gradients", "worker 0: 2 gradients with 20 samples: 1.00 times an even share",
             "worker 1: 2 gradients with 20 samples, 1 dropped with 10 samples: 1.00 times an even share"}));
}

}  // namespace
}  // namespace lockstep::worker_lines_test
