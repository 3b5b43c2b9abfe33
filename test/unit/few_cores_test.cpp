#include "lockstep/report/live/run_output.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/error_text.h"

namespace lockstep::few_cores_test {
namespace {

TEST(FewCores, ACoreForEachThreadIsEnough) {
  EXPECT_EQ(few_cores_warning(std::vector<Index>{4, 5, 4}, 4), "");
  EXPECT_EQ(few_cores_warning(std::vector<Index>{1}, 1), "");
}

TEST(FewCores, TheRankWithTheFewestIsNamedWithTheCommandLineForAll) {
  test::expect_parts(few_cores_warning(std::vector<Index>{4, 4, 3, 1}, 4),
                     {"rank 3 runs 4 threads on 1 core;", "mpirun -np 4 --map-by slot:PE=4",
                      "mpiexec -n 4 -bind-to core:4", "srun --cpus-per-task=4"});
  test::expect_parts(few_cores_warning(std::vector<Index>{4, 3}, 4), {"rank 1 runs 4 threads on 3 cores;"});
}

}  // namespace
}  // namespace lockstep::few_cores_test
