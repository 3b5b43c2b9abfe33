// Files that cannot be read, hold other bits than were written, or never answer: data sets and checkpoints.
#include "support/file_faults.h"
#include "support/running_job.h"
#include "support/trainer_runs.h"

namespace lockstep::test::read_faults_test {
namespace {

constexpr const char* kStream = "--data.memory stream --data.shuffle_buffer 10";

const SmallExperiment& the_experiment() {
  static const SmallExperiment experiment;
  return experiment;
}

class ReadFaults : public testing::Test {
 protected:
  std::string large_arguments(const std::string& run, const std::string& flags) const {
    return fmt::format(
        "--config {} --run.dir {} --run.progress none --data.train {} --data.train_labels {} --data.test '' "
        "--data.test_labels '' --train.epochs 1 --train.replicas 2 --train.global_batch 50 {}",
        experiment_.config(), run, large_.images, large_.labels, flags);
  }

  // From the last read of records by rank 1 on: behind it is only a look for the end of the file.
  FileFault fault_at_last_read(const std::string& flags, const std::string& effect) const {
    const FileFaults none({.in = large_.images});
    succeeded(run_trainer(2, large_arguments(experiment_.fresh_run(), flags), none));
    const std::vector<FileCall> calls = none.calls(1);
    return {.in = large_.images,
            .effect = effect,
            .calls = "read",
            .from = static_cast<int>(std::ranges::count(calls, "read", &FileCall::kind)) - 1,
            .count = kForever,
            .rank = 1};
  }

  const SmallExperiment& experiment_ = the_experiment();
  // Several chunks of records, of which a run in stream mode reads the last ones when it is under way.
  const IdxPair large_ =
      write_idx_pair(experiment_.directory() / "large",
                     {.rows = 6000, .shape = {{20, 20}}, .classes = 4, .compressed = false});
};

TEST_F(ReadFaults, DataThatCannotBeReadOnOneRankIsOneErrorWithItsReason) {
  for (const std::string flags : {"--data.memory load", kStream}) {
    FileFault fault = fault_at_last_read(flags, "EIO");
    for (const auto& [effect, reason] :
         {std::pair{"EIO", "Input/output error"}, {"end", "is truncated: record "}}) {
      SCOPED_TRACE(flags + " " + effect);
      fault.effect = effect;
      const FileFaults faults(fault);
      const std::string run = experiment_.fresh_run();
      const ProcessResult result = run_trainer(2, large_arguments(run, flags), faults);
      EXPECT_GT(faults.hits(), 0) << "nothing went wrong";
      EXPECT_EQ(result.exit_code, kExitData) << result.errors;
      EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
      const std::size_t begin = result.errors.find("rank 1: ");
      ASSERT_NE(begin, std::string::npos) << result.errors;
      const std::string line = result.errors.substr(begin, result.errors.find('\n', begin) - begin);
      EXPECT_NE(line.find(large_.images), std::string::npos) << line;
      expect_parts(line, {reason});
    }
  }
}

// Between the look at its header and the reading of its records.
TEST_F(ReadFaults, AFileThatVanishesIsOneErrorWithItsReason) {
  const FileFaults faults(
      {.in = large_.images, .effect = "ENOENT", .calls = "open", .from = 2, .count = kForever, .rank = 1});
  expect_failed(run_trainer(2, large_arguments(experiment_.fresh_run(), ""), faults), kExitData,
                {"error: rank 1: cannot open '" + large_.images + "': No such file"});
}

// By all ranks, at about the same time.
TEST_F(ReadFaults, AFileThatShrinksInMidRunEndsTheRun) {
  RunningJob job(2, large_arguments(experiment_.fresh_run(),
                                    std::string(kStream) + " --debug.delay_rank 0 --debug.delay_ms 10"));
  ASSERT_TRUE(job.says("rank 1 streams", 20)) << job.errors();
  std::filesystem::resize_file(large_.images, 1000);
  EXPECT_EQ(job.wait(30), kExitData) << job.errors();
  expect_parts(job.errors(), {"large-images-idx-ubyte' is truncated"});
  EXPECT_EQ(job.processes_left(), 0);
}

// For a run that is to go on for another epoch.
constexpr const char* kLonger = "--checkpoint.keep 3 --train.epochs 2 --run.resume_allow train.epochs";

// One that nothing befell.
const std::string& whole_run() {
  static const std::string run = [] {
    const std::string whole = the_experiment().fresh_run();
    succeed(1, saving_arguments(the_experiment(), whole, kLonger));
    return whole;
  }();
  return run;
}

class DamagedCheckpoints : public ReadFaults {
 protected:
  // Goes on from the 6th step, because the checkpoint of the 9th cannot be used.
  void expect_one_before(const ProcessResult& result, const std::string& run,
                         const std::string& reason) const {
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const std::size_t begin = result.errors.find("checkpoint of step 9 is not used, and put aside: ");
    ASSERT_NE(begin, std::string::npos) << result.errors;
    const std::string line = result.errors.substr(begin, result.errors.find('\n', begin) - begin);
    EXPECT_NE(line.find(checkpoint_of(run, 9)), std::string::npos) << line;
    expect_parts(line, {reason});
    expect_parts(result.output, {"goes on from '" + checkpoint_of(run, 6)});
    EXPECT_TRUE(model_of(run) == model_of(whole_));
  }

  const std::string& whole_ = whole_run();
};

TEST_F(DamagedCheckpoints, OneThatCannotBeReadIsPassedOver) {
  const std::string made = experiment_.fresh_run();
  succeed(2, saving_arguments(experiment_, made, "--checkpoint.keep 3"));
  for (const auto& [file, calls, effect, reason] :
       {std::array{"/manifest.json", "read", "EIO", "Input/output error"},
        {"/model.safetensors", "read", "EIO", "Input/output error"},
        {"/state-00001.bin", "read", "end", "bytes"}}) {
    SCOPED_TRACE(fmt::format("{} {}", file, effect));
    const std::string run = experiment_.fresh_run();
    std::filesystem::copy(made, run, std::filesystem::copy_options::recursive);
    const FileFaults faults({.in = checkpoint_of(run, 9) + file,
                             .effect = effect,
                             .calls = calls,
                             .count = kForever,
                             .rank = kEveryRank});
    const ProcessResult result = run_trainer(2, saving_arguments(experiment_, run, kLonger), faults);
    EXPECT_GT(faults.hits(), 0) << "nothing went wrong";
    expect_one_before(result, run, reason);
  }
}

// Never a fresh start in silence.
TEST_F(DamagedCheckpoints, ADirectoryThatCannotBeReadIsAnError) {
  const std::string run = experiment_.fresh_run();
  succeed(2, saving_arguments(experiment_, run, "--checkpoint.keep 3"));
  const FileFaults faults(
      {.in = run + "/checkpoints", .effect = "EIO", .calls = "open", .count = kForever, .rank = 0});
  expect_failed(run_trainer(2, saving_arguments(experiment_, run, kLonger), faults), kExitData,
                {"cannot read '" + run + "/checkpoints': Input/output error"});
}

// A disk that lies: whatever was written, other bits are there.
TEST_F(DamagedCheckpoints, BitsThatTurnedOnTheirWayToTheDiskAreFound) {
  for (const auto& [file, rank] :
       {std::pair{"/model.safetensors", 0}, {"/state-00001.bin", 1}, {"/manifest.json", 0}}) {
    SCOPED_TRACE(file);
    const std::string run = experiment_.fresh_run();
    const FileFaults faults(
        {.in = checkpoint_of(run, 9) + ".partial" + file, .effect = "flip", .calls = "write", .rank = rank});
    succeeded(run_trainer(2, saving_arguments(experiment_, run, "--checkpoint.keep 3"), faults));
    EXPECT_EQ(faults.hits(), 1);
    expect_one_before(run_trainer(1, saving_arguments(experiment_, run, kLonger)), run, "damaged");
  }
}

// The report of the watchdog: which rank, and what it does.
class FilesThatNeverAnswer : public ReadFaults {
 protected:
  static void expect_named(RunningJob& job, const std::string& phase) {
    EXPECT_EQ(job.wait(30), kExitStalled) << job.output() << job.errors();
    EXPECT_EQ(job.processes_left(), 0);
    EXPECT_TRUE(job.memory_left().empty()) << testing::PrintToString(job.memory_left());
    EXPECT_EQ(count_of(job.errors(), "1 of 2 did not arrive: rank 1\n"), 1) << job.errors();
    expect_parts(job.errors(), {" waits for nobody, in phase " + phase});
  }

  static constexpr const char* kSoon = " --comm.stall_seconds 1 --comm.abort_seconds 0.5";
};

TEST_F(FilesThatNeverAnswer, DataThatIsReadBeforeTraining) {
  const FileFaults faults(fault_at_last_read("--data.memory load", "hang"));
  RunningJob job(2, large_arguments(experiment_.fresh_run(), std::string("--data.memory load") + kSoon),
                 faults.words());
  expect_named(job, "loading");
}

TEST_F(FilesThatNeverAnswer, DataThatAThreadReadsAhead) {
  const FileFaults faults(fault_at_last_read(kStream, "hang"));
  RunningJob job(2, large_arguments(experiment_.fresh_run(), std::string(kStream) + kSoon), faults.words());
  expect_named(job, "data of step ");
}

TEST_F(FilesThatNeverAnswer, ACheckpointThatAThreadWrites) {
  const std::string run = experiment_.fresh_run();
  const FileFaults faults({.in = checkpoint_of(run, 6), .effect = "hang", .calls = "sync", .rank = 1});
  RunningJob job(2, saving_arguments(experiment_, run, kSoon), faults.words());
  expect_named(job, "checkpoint of step ");
}

}  // namespace
}  // namespace lockstep::test::read_faults_test
