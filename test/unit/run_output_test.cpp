// What a run says of itself beside its numbers: cores, shards and workers.
#include "lockstep/report/live/run_output.h"

#include "support/error_text.h"

namespace lockstep::run_output_test {

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

using Shards = std::vector<ClassCounts>;

TEST(UnevenShards, ShardsOfASortedFileAreNamedWithTheClass) {
  test::expect_parts(describe_uneven_shards(Shards{{{3, 1000}}, {{3, 500}, {7, 500}}, {}}),
                     {"class 3 makes 100.0 % of the shard of replica 0, but 75.0 % of all samples"});
  test::expect_parts(describe_uneven_shards(Shards{{{3, 900}, {7, 100}}, {{3, 1000}, {7, 100}}, {{7, 200}}}),
                     {"class 3 makes 0.0 % of the shard of replica 2"});
}

// Of ten samples of a class that is half of all, two or eight are not rare.
TEST(UnevenShards, SmallShardsDifferByChance) {
  EXPECT_EQ(describe_uneven_shards(Shards{{{0, 8}, {1, 2}}, {{0, 2}, {1, 8}}}), "");
}

// A twentieth more of one class, which in so many samples is no chance, does no harm.
TEST(UnevenShards, LargeShardsMayDifferALittle) {
  EXPECT_EQ(describe_uneven_shards(Shards{{{0, 550'000}, {1, 450'000}}, {{0, 450'000}, {1, 550'000}}}), "");
}

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

}  // namespace lockstep::run_output_test
