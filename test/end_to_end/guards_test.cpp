// Launches that went wrong, and ranks that die.
#include "lockstep/base/timer.h"
#include "support/trainer_runs.h"

namespace lockstep::test::guards_test {
namespace {

class Guards : public SmallRuns {
 protected:
  std::string arguments(const std::string& more = "") { return words(experiment_.fresh_run(), more); }

  static nlohmann::json summary_of(const std::string& run) {
    return parse_json<nlohmann::json>(read_file(run + "/summary.json"));
  }
};

TEST_F(Guards, SeveralTasksThatEachSeeAWorldOfOneAreRefused) {
  for (const char* variable : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    // Rank 0 of Open MPI's singleton does not read these; MPICH would try to reach a launcher by PMI_SIZE
    // alone.
    expect_failed(run_command(fmt::format("{}=4 {} {}", variable, trainer_path(), arguments())), kExitConfig,
                  {"started 4 tasks", "mpirun -np 4 trainer"});
  }
}

TEST_F(Guards, AnEndOfTheJobThatCannotBeItsIsAWarningAndNoLimit) {
  for (const char* end : {"", "abc", "1600000000"}) {
    const ProcessResult result =
        succeeded(run_command(fmt::format("SLURM_JOB_END_TIME={} {} {}", end, trainer_path(), arguments())));
    EXPECT_EQ(count_of(result.errors, fmt::format("warning: SLURM_JOB_END_TIME is '{}', ", end)), 1)
        << result.errors;
    expect_parts(result.errors, {"run.time_limit"});
  }
  const ProcessResult unlimited =
      succeeded(run_command(fmt::format("SLURM_JOB_END_TIME=abc {} {}", trainer_path(),
                                        arguments("--train.steps 3 --run.time_limit UNLIMITED"))));
  EXPECT_EQ(unlimited.errors, "");
}

// HOME is there, since Open MPI 5 does not start without it.
TEST_F(Guards, VariablesOfTheLauncherWithAnythingInThemStopNothing) {
  const ProcessResult result = succeeded(run_command(
      "export SLURM_STEP_NUM_TASKS=abc PMI_SIZE=4abc PALS_NRANKS=-7 FLUX_JOB_SIZE=99999999999999999999 "
      "SLURM_JOB_ID=\"$(printf '1\\033[2J')\" SLURM_RESTART_COUNT=9223372036854775807 OMP_NUM_THREADS=abc "
      "TZ=nowhere/at/all LC_ALL=xx_YY.nothing HOME=nowhere; unset TMPDIR TERM; " +
      trainer_path() + " " + arguments()));
  expect_parts(result.output, {"; Slurm job 1?[2J, start 1\n"});
}

// Open MPI ends a program within MPI_Init, with a code that means a bug of ours elsewhere. Its mpirun keeps
// to that code, and kills ranks that would have more to say.
TEST_F(Guards, AnMpiThatDoesNotStartIsAnErrorOfCommunication) {
  const ProcessResult result = run_command("OMPI_MCA_pml=nonsense " + trainer_path() + " " + arguments());
  if (result.exit_code == 0) GTEST_SKIP() << "another MPI";
  EXPECT_EQ(result.exit_code, kExitComm) << result.errors;
  EXPECT_EQ(count_of(result.errors, "error: MPI did not start: Open MPI "), 1) << result.errors;
}

// The daemon of Open MPI is stopped, so that MPI_Init waits for ever.
TEST_F(Guards, AStartThatHangsInMpiEndsByASignal) {
  for (const char* signal : {"TERM", "INT"}) {
    const ProcessResult result = run_command(fmt::format(
        R"sh({} {} & p=$!
for k in $(seq 400); do
  for c in $(pgrep -P $p); do if [ "$(cat /proc/$c/comm 2>/dev/null)" = orted ]; then o=$c; break 2; fi; done
  sleep 0.005
done
[ -n "$o" ] || {{ wait $p; exit 99; }}
kill -STOP $o; sleep 1; kill -{} $p; (sleep 10; kill -KILL $p) 2>/dev/null & k=$!
wait $p; code=$?; kill $k $! 2>/dev/null; kill -KILL $o; exit $code)sh",
        trainer_path(), arguments(), signal));
    if (result.exit_code == 99 || result.exit_code == 0) GTEST_SKIP() << "nothing to stop";
    EXPECT_EQ(result.exit_code, kExitStopped) << signal << result.errors;
    expect_parts(result.errors, {fmt::format("error: stopped by SIG{} while MPI was starting", signal)});
  }
}

TEST_F(Guards, ACpuWithoutTheInstructionsOfTheBuildIsToldSo) {
  const ProcessResult result = run_command("LOCKSTEP_CPU_WITHOUT=avx2 " + trainer_path() + " --version");
  if (result.exit_code == 0) GTEST_SKIP() << "it was not built for AVX2";
  EXPECT_EQ(result.exit_code, kExitConfig);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(count_of(result.errors, "\n"), 1) << result.errors;
  expect_parts(result.errors,
               {"built for CPUs with avx2, which this one has not", "cmake --preset portable"});
}

TEST_F(Guards, OtherFlagsOnSomeRankAreRefusedWithItsNumber) {
  const std::string same = trainer_path() + " " + arguments();
  expect_failed(run_command(mpiexec_of({same, same, same + " --train.lr 0.25"})), kExitConfig,
                {"do not have the same config", "rank 2: hash"});
}

TEST_F(Guards, AnotherBinaryOnSomeRankIsRefusedWithItsNumber) {
  const std::string other = experiment_.directory() / "trainer";
  std::filesystem::copy_file(trainer_path(), other);
  std::ofstream(other, std::ios::app) << "x";
  const std::string same = " " + arguments();
  expect_failed(run_command(mpiexec_of({trainer_path() + same, trainer_path() + same, other + same})),
                kExitConfig, {"do not have the same program", "rank 2: hash"});
}

TEST_F(Guards, DataOfAnotherSizeOnSomeRankIsRefusedWithItsNumber) {
  // Relative paths, and another working directory for one rank.
  const std::string here = experiment_.directory() / "here";
  const std::string there = experiment_.directory() / "there";
  for (const auto& [directory, rows] : {std::pair{here, 40}, std::pair{there, 48}}) {
    std::filesystem::create_directory(directory);
    write_idx_pair(directory + "/train", {.rows = rows, .classes = 4});
  }
  const std::string same =
      arguments("--data.train train-images-idx-ubyte.gz --data.train_labels train-labels-idx1-ubyte.gz");
  const auto in = [&](const std::string& directory) {
    return "cd " + directory + " && " + trainer_path() + " " + same;
  };
  expect_failed(run_command(mpiexec_of({in(here), in(there)})), kExitConfig,
                {"do not have the same data", "48 rows"});
}

TEST_F(Guards, AnUncaughtExceptionOnOneRankEndsTheJobWithItsMessage) {
  const Stopwatch watch;
  const ProcessResult result = launch_trainer(3, arguments("--debug.fail_rank 1 --debug.fail_step 3"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(watch.seconds(), 15);
  EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
  expect_parts(result.errors, {"rank 1: ", "fails at step 3 as asked"});
}

TEST_F(Guards, ReplicasThatDifferEndTheRunWithTheirNames) {
  const std::string flip = arguments(
      "--distribute.strategy allreduce --comm.verify_every 2 --debug.flip_rank 1 --debug.flip_step 3 ");
  expect_failed(run_trainer(3, flip), kExitComm, {"2.bias differs by up to ", "rank 1 against ranks 0, 2"});
  const ProcessResult repaired =
      succeed(3, flip + "--comm.on_desync rebroadcast --run.dir " + experiment_.fresh_run());
  expect_parts(repaired.output, {"(1 with replicas made equal)"});
}

TEST_F(Guards, BadStepsAreLeftOutAndCounted) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult result =
      succeed(2, arguments("--train.on_nan skip --debug.nan_replica 3 --debug.nan_step 4 --debug.nan_steps 2 "
                           "--run.dir " +
                           run));
  expect_parts(result.errors, {"step 5 is left out: replica 3: the loss itself is not finite"});
  expect_parts(result.output, {"(2 left out)"});
  EXPECT_EQ(summary_of(run)["skipped_steps"], 2);
}

TEST_F(Guards, MoreThreadsThanCoresIsAWarningWithTheRightCommandLine) {
  const ProcessResult result = succeeded(
      run_command("taskset -c 0 " + mpiexec_words() + " " + rank_words(2, arguments("--train.threads 2"))));
  expect_parts(result.errors, {"runs 2 threads on 1 core;", "--map-by slot:PE=2"});
}

TEST_F(Guards, ASlowRankShowsAsWaiting) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult result =
      succeed(2, arguments("--debug.delay_rank 1 --debug.delay_ms 60 --run.dir " + run));
  expect_parts(result.output, {"waiting "});
  // Rank 0 waits nearly always and rank 1 never: about half of the time of both, less beside other programs.
  EXPECT_GT(summary_of(run)["time"]["waiting"], 0.2) << result.output;
}

}  // namespace
}  // namespace lockstep::test::guards_test
