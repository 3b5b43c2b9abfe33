// Parameter servers from the executable: what a run says and leaves behind, how it is repeated, and how it
// ends when a rank dies or stops.
#include <future>

#include "lockstep/base/timer.h"
#include "support/trainer_runs.h"

namespace lockstep::test::servers_test {
namespace {

class Servers : public SmallRuns {
 protected:
  Servers() : SmallRuns("--distribute.strategy parameter_server --train.replicas 2") {}
};

struct WorkerSums {
  Index steps = 0;
  Index samples = 0;
  Index slices = 0;
};

// Work of all workers together; each has handed in every gradient that it has computed.
WorkerSums sums_of_workers(const nlohmann::json& summary) {
  WorkerSums sums;
  for (const auto& worker : summary["asynchrony"]["workers"]) {
    EXPECT_EQ(worker["computed"], worker["steps"]);
    sums.steps += worker["steps"].get<Index>();
    sums.samples += worker["samples"].get<Index>();
    for (const auto& count : worker["staleness"]) sums.slices += count.get<Index>();
  }
  return sums;
}

TEST_F(Servers, AnAsynchronousRunAccountsForEveryGradient) {
  const std::string directory = experiment_.fresh_run();
  expect_parts(succeed(4, words(directory, "--distribute.servers 2 --distribute.mode async")).output,
               {"staleness: mean", "worker 1: "});
  const auto summary = parse_json<nlohmann::json>(read_file(directory + "/summary.json"));
  EXPECT_EQ(summary["steps"], 36);  // two epochs of nine batches by two workers
  const WorkerSums sums = sums_of_workers(summary);
  EXPECT_EQ(sums.steps, 36);
  EXPECT_EQ(summary["samples_seen"], sums.samples);
  EXPECT_EQ(count_of(read_file(directory + "/metrics.jsonl"), R"("kind":"workers")"), 2);
}

// Counts are those of the whole run, over all its starts: after a second resume as after the first.
TEST_F(Servers, AnAsynchronousRunThatGoesOnAccountsForWhatWasBefore) {
  const std::string directory = experiment_.fresh_run();
  const std::string flags = "--distribute.mode async --checkpoint.every '1 epoch' --train.epochs ";
  succeed(3, words(directory, flags + "1"));
  for (const std::string epochs : {"2", "3"})
    succeed(3, words(directory, flags + epochs + " --run.resume_allow train.epochs"));
  const auto summary = parse_json<nlohmann::json>(read_file(directory + "/summary.json"));
  const WorkerSums sums = sums_of_workers(summary);
  EXPECT_EQ(sums.steps, summary["steps"]);
  EXPECT_EQ(sums.samples, summary["samples_seen"]);
  EXPECT_EQ(sums.slices, summary["steps"]) << "of one server";
}

// An evaluation of a fifth of a second, sample by sample: a checkpoint becomes due in it, before any worker
// has stepped again.
TEST_F(Servers, ACheckpointThatBecomesDueInAnEvaluationDoesNotRepeatIt) {
  const std::string directory = experiment_.fresh_run();
  succeed(2, words(directory,
                   "--distribute.mode async --train.replicas 1 --train.epochs 1 --eval.every '0.5 epochs' "
                   "--eval.batch 1 --checkpoint.every \"0.1 seconds\" "
                   "--model.layers \"dense(4096) relu dense(4096) relu dense(4)\""));
  EXPECT_EQ(count_of(read_file(directory + "/metrics.jsonl"), R"("kind":"evaluation")"), 2);
}

TEST_F(Servers, ARecordedRunIsRepeatedByteForByte) {
  const std::string first = experiment_.fresh_run();
  const std::string options = "--distribute.servers 2 --distribute.mode bounded --distribute.staleness 2 ";
  succeed(4, words(first, options + "--distribute.record true"));
  const std::string second = experiment_.fresh_run();
  succeed(4, words(second, options + "--distribute.replay " + first + " --debug.delay_rank 0 " +
                               "--debug.delay_ms 5"));
  EXPECT_EQ(read_file(first + "/model.safetensors"), read_file(second + "/model.safetensors"));

  const ProcessResult missing =
      ended_with(run_trainer(4, words(experiment_.fresh_run(), options + "--distribute.replay /nowhere")), 3);
  EXPECT_EQ(count_of(missing.errors + missing.output, "/nowhere/arrivals.0.txt"), 1) << missing.errors;
}

TEST_F(Servers, WhatCannotBeIsRefusedWithItsReason) {
  for (const auto& [options, reason] :
       {std::pair("--distribute.servers 3", "nobody would train"),
        std::pair("--distribute.mode async --distribute.reduction ordered", "order in which they arrive"),
        std::pair("--distribute.backup_workers 2", "nobody's gradient")}) {
    const ProcessResult result = ended_with(run_trainer(3, words(experiment_.fresh_run(), options)), 2);
    EXPECT_EQ(count_of(result.errors + result.output, reason), 1) << result.errors;
  }
}

// `signal` reaches one of the ranks in the middle of training.
struct End {
  ProcessResult result;
  double seconds = 0;  ///< from the signal to the end of the job
};

End end_of(int ranks, int rank, const std::string& signal, const std::string& directory,
           const std::string& arguments) {
  const Stopwatch whole;
  const std::string script = fmt::format(
      R"({} {} & job=$!
for i in $(seq 3000); do [ -s {}/metrics.jsonl ] && break; sleep 0.01; done
for process in /proc/[0-9]*; do
  if grep -qF {} $process/cmdline 2>/dev/null &&
     tr '\0' '\n' <$process/environ | grep -Eqx '(OMPI_COMM_WORLD_RANK|PMI_RANK)={}'; then
    kill -{} ${{process#/proc/}}
  fi
done
date +%s.%N >{}/signalled
wait $job; code=$?
date +%s.%N >{}/ended
exit $code)",
      mpiexec_words(), rank_words(ranks, arguments), directory, directory, rank, signal, directory,
      directory);
  End end{.result = run_command(script)};
  end.seconds = std::stod(read_file(directory + "/ended")) - std::stod(read_file(directory + "/signalled"));
  return end;
}

TEST_F(Servers, ADeadWorkerOrServerEndsTheJobWithItsName) {
  for (const int rank : {1, 2}) {
    for (const std::string mode : {"sync", "async"}) {
      SCOPED_TRACE(fmt::format("rank {}, {}", rank, mode));
      const std::string directory = experiment_.fresh_run();
      const End end =
          end_of(3, rank, "KILL", directory,
                 words(directory, "--train.epochs 1000000 --run.log_every 5 --distribute.mode " + mode));
      EXPECT_NE(end.result.exit_code, 0);
      EXPECT_LT(end.seconds, 10);
      expect_parts(end.result.errors + end.result.output, {fmt::format("rank {}", rank)});
    }
  }
}

// Two workers, two servers. The jobs of both modes wait at the same time.
TEST_F(Servers, AStoppedWorkerOrServerEndsTheJobWithItsName) {
  for (const int rank : {1, 2, 3}) {
    std::map<std::string, std::future<End>> ends;
    for (const std::string mode : {"bounded", "async"}) {
      const std::string directory = experiment_.fresh_run();
      const std::string flags =
          "--train.steps 10000000 --eval.every never --run.log_every 5 --distribute.servers 2 "
          "--distribute.timeout_seconds 3 --distribute.mode " +
          mode;
      ends[mode] =
          std::async(std::launch::async, end_of, 4, rank, "STOP", directory, words(directory, flags));
    }
    for (auto& [mode, waiting] : ends) {
      SCOPED_TRACE(fmt::format("rank {}, {}", rank, mode));
      const End end = waiting.get();
      EXPECT_EQ(end.result.exit_code, 4);
      EXPECT_LT(end.seconds, 10);
      expect_parts(end.result.errors, {fmt::format("no sign of life from rank {} ", rank)});
    }
  }
}

// Whoever waits for the server is not to name it while it waits for the worker's gradient. The server gives
// up after a quarter of the time limit, the other worker after half: in between the launcher has to end the
// job.
TEST_F(Servers, AWorkerStoppedWhileItsGradientTravelsIsNamed) {
  const std::string directory = experiment_.fresh_run();
  const std::string flags =
      "--train.steps 10000000 --eval.every never --run.log_every 1 --distribute.mode async "
      "--distribute.timeout_seconds 12 --train.lr 1e-6 --model.layers 'dense(1500) relu dense(1500) relu "
      "dense(4)'";
  const End end = end_of(3, 1, "STOP", directory, words(directory, flags));
  EXPECT_EQ(end.result.exit_code, 4);
  expect_parts(end.result.errors, {"no sign of life from rank 1 "});
  expect_no_parts(end.result.errors, {"no sign of life from rank 2 "});
}

}  // namespace
}  // namespace lockstep::test::servers_test
