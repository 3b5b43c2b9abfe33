// Runs that go on for another length, with another rate, without some of their files, or whose directory is
// gone before they end: each ends, says what is so, and leaves what it goes on from. What a run must not go
// on from or write to: other data, and the checkpoints of other runs.
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/file_faults.h"
#include "support/idx_files.h"
#include "support/special_files.h"
#include "support/trainer_process.h"
#include "support/trainer_runs.h"

namespace lockstep::test::resume_limits_test {
namespace {

// The run of saving_arguments(): nine steps, with checkpoints after the 3rd, 6th and 9th.
class ResumeLimits : public testing::Test {
 protected:
  // Ends within a minute, or is killed.
  ProcessResult train(const std::string& run, const std::string& flags = "") const {
    return run_command(fmt::format("timeout -s KILL 60 {} {}", trainer_path(), arguments(run, flags)));
  }
  std::string arguments(const std::string& run, const std::string& flags) const {
    return saving_arguments(experiment_, run, "--train.replicas 2 --checkpoint.keep 9 " + flags);
  }
  std::string complete_run() const {
    const std::string run = experiment_.fresh_run();
    succeeded(train(run));
    return run;
  }
  // Ends in step 9, with the checkpoints of steps 3 and 6.
  std::string failed_run() const {
    const std::string run = experiment_.fresh_run();
    EXPECT_EQ(train(run, failing_in(9)).exit_code, kExitTraining);
    std::filesystem::remove(run + "/model.safetensors");  // as if it had been killed
    return run;
  }
  // At the start that finds them, and at the next.
  void expect_damaged_ones_are_told(const std::string& run) const {
    for (const Index step : finished_checkpoints(run))
      write_file_atomically(checkpoint_of(run, step) + "/manifest.json", "{");
    for (const std::string& told :
         {run + "/checkpoints' has no whole checkpoint",
          run +
              "/checkpoints' now but damaged ones (step-000000003.damaged, step-000000005.damaged, step-"}) {
      expect_failed(train(run), kExitData, {told});
    }
  }
  static std::string failing_in(Index step) {
    return fmt::format("--debug.nan_replica 0 --debug.nan_step {} ", step - 1);
  }

  SmallExperiment experiment_;
};

TEST_F(ResumeLimits, AShorterLengthThanWhatIsDoneIsRefusedAndHarmsNothing) {
  for (const bool complete : {true, false}) {
    const std::string run = complete ? complete_run() : failed_run();
    const std::vector<Index> checkpoints = finished_checkpoints(run);
    const std::string done = complete ? "9" : "6";
    for (const std::string flags : {"--train.epochs 0.5 --data.prefetch 0",
                                    "--train.epochs 0.5 --data.prefetch 4", "--train.global_batch 48"}) {
      const ProcessResult result =
          ended_with(train(run, flags + " --run.resume_allow train.epochs,train.global_batch"), kExitConfig);
      expect_parts(result.errors, {"has made " + done + " steps", "the run has 5 steps", "at least " + done});
    }
    EXPECT_EQ(finished_checkpoints(run), checkpoints);
    EXPECT_EQ(std::filesystem::exists(run + "/summary.json"), complete);
  }
  const std::string other = complete_run();
  const std::string fresh = experiment_.fresh_run();
  expect_failed(run_trainer(2, arguments(fresh, "--run.resume " + other +
                                                    " --train.epochs 0.5 --run.resume_allow train.epochs")),
                kExitConfig, {"has made 9 steps", "name an earlier checkpoint"});
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(ResumeLimits, AtTheLengthThatIsDoneARunIsCompleteOrIsCompleted) {
  const std::string run = complete_run();
  const std::string model = model_of(run);
  const std::string metrics = metrics_of(run);
  expect_parts(succeeded(train(run, "--train.epochs 0.99 --run.resume_allow train.epochs")).output,
               {"nothing to do"});
  // Killed between its last checkpoint and its end.
  std::filesystem::remove(run + "/summary.json");
  std::filesystem::remove(run + "/model.safetensors");
  expect_parts(succeeded(train(run)).output, {"all 9 steps are made", "summary.json"});
  EXPECT_TRUE(model_of(run) == model);
  EXPECT_EQ(metrics_of(run), metrics);

  const std::string fresh = experiment_.fresh_run();
  succeeded(train(fresh, "--run.resume " + checkpoint_of(run, 6) +
                             " --train.epochs 0.66 --run.resume_allow train.epochs"));
  EXPECT_EQ(finished_checkpoints(fresh), std::vector<Index>{6});
  EXPECT_TRUE(model_of(fresh) == read_file(checkpoint_of(run, 6) + "/model.safetensors"));
}

// The summary of the shorter run is no sign that the longer one has ended.
TEST_F(ResumeLimits, ALongerRunThatWasKilledIsNotTakenForComplete) {
  const std::string run = complete_run();
  const std::string longer = "--train.epochs 2 --run.resume_allow train.epochs ";
  EXPECT_NE(train(run, longer + failing_in(14)).exit_code, 0);
  expect_parts(succeeded(train(run, "--train.epochs 2")).output, {"12 steps", "done: "});
  EXPECT_EQ(newest_checkpoint(run), 18);

  const std::string never = experiment_.fresh_run();
  succeeded(train(never, "--checkpoint.every never --train.keep last"));
  expect_failed(train(never, longer), kExitConfig, {"complete after 9 steps", "no checkpoint", "train.init"});
}

TEST_F(ResumeLimits, AnotherLearningRateIsTold) {
  const std::string schedule = "--train.schedule cosine --train.lr 1 ";
  const std::string run = experiment_.fresh_run();
  succeeded(train(run, schedule));
  const ProcessResult longer = train(run, schedule + "--train.epochs 2 --run.resume_allow train.epochs");
  expect_parts(longer.errors, {"learning rate goes from 0.00723 to 0.5 with step 10",
                               "the schedule now ends at step 18, not 9"});
  const std::string other = failed_run();
  const ProcessResult lower = train(other, "--train.lr 0.01 --run.resume_allow train.lr");
  expect_parts(lower.errors, {"goes from 0.05 to 0.01 with step 7, since train.lr was 0.05, is 0.01"});
  const ProcessResult same = train(failed_run(), "--train.epochs 2 --run.resume_allow train.epochs");
  EXPECT_EQ(same.errors.find("learning rate"), std::string::npos) << "a constant one: " << same.errors;
}

TEST_F(ResumeLimits, AnAuditThatIsTurnedOnIsNoFalseAlarm) {
  const std::string run = experiment_.fresh_run();
  const std::string audit = "--train.epochs 3 --data.audit ";
  train(run, audit + "false " + failing_in(14));
  const ProcessResult on = train(run, audit + "true " + failing_in(20));
  expect_parts(on.output, {"12 steps", "audit: epoch 2 used 203 samples"});
  const ProcessResult off = train(run, audit + "false " + failing_in(23));
  EXPECT_EQ(off.output.find("audit: "), std::string::npos);
  expect_parts(succeeded(train(run, audit + "true")).output, {"21 steps", "audit: epoch 3 used 203 samples"});
}

TEST_F(ResumeLimits, MetricsThatWereCutOffAreMissed) {
  const std::string run = failed_run();
  const std::string metrics = run + "/metrics.jsonl";
  const std::string before = read_file(metrics);
  const std::size_t line = before.find('\n') + 1;
  std::filesystem::resize_file(metrics, line + 10);
  expect_parts(succeeded(train(run)).errors, {"metrics.jsonl' has", "lines after step 3 are missing"});
  const std::string after = read_file(metrics);
  EXPECT_TRUE(after.starts_with(before.substr(0, line) + "{\"kind\":")) << after;
}

TEST_F(ResumeLimits, LostCheckpointsAreNoFreshStart) {
  const std::string run = failed_run();
  const std::string metrics = read_file(run + "/metrics.jsonl");
  std::filesystem::rename(run + "/checkpoints", run + "-kept");
  for (const std::string flags :
       {"", "--checkpoint.every never --train.keep last", "--checkpoint.dir none"}) {
    expect_failed(train(run, flags), kExitData,
                  {"has made checkpoints in '" + run + "/checkpoints'", "\"restart\""});
    EXPECT_EQ(read_file(run + "/metrics.jsonl"), metrics);
  }
  std::filesystem::copy(run, run + "-damaged", std::filesystem::copy_options::recursive);
  std::filesystem::copy(run + "-kept", run + "-damaged/checkpoints",
                        std::filesystem::copy_options::recursive);
  succeeded(train(run, "--checkpoint.dir " + run + "-kept"));
  expect_damaged_ones_are_told(run + "-damaged");

  for (const std::string flags : {"", "--checkpoint.every never --train.keep last"}) {
    const std::string young = experiment_.fresh_run();
    EXPECT_NE(train(young, "--debug.fail_rank 0 --debug.fail_step 2 --run.log_every 1 " + flags).exit_code,
              0);
    EXPECT_NE(read_file(young + "/metrics.jsonl"), "");
    expect_parts(succeeded(train(young, flags)).output, {"ended before its first checkpoint"});
  }
}

// What cannot be opened may well be whole: it is not put aside, and no older one is taken for the newest.
TEST_F(ResumeLimits, ACheckpointThatARankCannotOpenIsLeftAsItIs) {
  const std::string run = failed_run();
  const std::vector<Index> checkpoints = finished_checkpoints(run);
  // Each of two ranks verifies every second file. The two ways to name a checkpoint take turns.
  std::array others{run, checkpoint_of(run, 6)};
  for (const auto& [rank, file, effect] : {std::tuple{1, "", "EIO"},
                                           {1, "", "ENOENT"},
                                           {0, "/manifest.json", "EIO"},
                                           {1, "/model.safetensors", "ENOENT"},
                                           {0, "/state-00000.bin", "EIO"}}) {
    SCOPED_TRACE(fmt::format("rank {} {} {}", rank, file, effect));
    const std::string in = checkpoint_of(run, 6) + file;
    const FileFaults faults({.in = in, .effect = effect, .calls = "open", .count = kForever, .rank = rank});
    std::swap(others[0], others[1]);
    for (const std::string& resume : {std::string("auto"), others[0]}) {
      const std::string directory = resume == "auto" ? run : experiment_.fresh_run();
      expect_failed(run_trainer(2, arguments(directory, "--run.resume " + resume), faults), kExitData,
                    {in, "the checkpoint '" + checkpoint_of(run, 6) + "' is left as it is"});
      EXPECT_EQ(finished_checkpoints(run), checkpoints);
    }
    EXPECT_GT(faults.hits(), 0);
  }
}

TEST_F(ResumeLimits, DamagedCheckpointsOfAnotherRunAreLeftWhereTheyAre) {
  const std::string run = failed_run();
  const std::vector<Index> checkpoints = finished_checkpoints(run);
  write_file_atomically(checkpoint_of(run, 6) + "/manifest.json", "{");
  const std::string fresh = experiment_.fresh_run();
  const ProcessResult result = succeeded(train(fresh, "--run.resume " + run));
  expect_parts(result.errors, {"the checkpoint of step 6 is not used: "});
  expect_parts(result.output, {"goes on from '" + checkpoint_of(run, 5)});
  EXPECT_EQ(finished_checkpoints(run), checkpoints);
}

TEST_F(ResumeLimits, ALogThatIsAFifoIsRefusedAtOnce) {
  const std::string run = failed_run();
  std::filesystem::remove(run + "/log.txt");
  make_fifo(run + "/log.txt");
  expect_failed(train(run), kExitData, {run + "/log.txt", "is a FIFO"});
}

// In the middle of a run.
TEST_F(ResumeLimits, ARunDirectoryThatIsGoneIsTold) {
  struct Case {
    int ranks;
    std::string command;
    std::vector<std::string> told;
    std::string results;  // where they are
  };
  const std::string run = experiment_.fresh_run();
  const std::vector<Case> cases{
      {2, "rm -rf $run", {"was deleted while the run went on", "made anew"}, run},
      {1, "rm -rf $run; mkdir $run; touch $run/thesis", {"was deleted while the run went on"}, run + ".1"},
      {1, "mv $run $run-moved", {"was moved to '" + run + "-moved'"}, run + "-moved"},
      {1,
       "rm $run/config.toml $run/metrics.jsonl",
       {"other files were deleted", "config.toml, metrics.jsonl"},
       run}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.command);
    const std::string slow = arguments(
        run, "--debug.delay_rank 0 --debug.delay_ms 70 --run.log_every 1 --checkpoint.every '6 steps'");
    const ProcessResult result = run_command(fmt::format(
        "run={}; {} & job=$!; for i in $(seq 3000); do [ -s $run/metrics.jsonl ] && break; sleep "
        "0.01; done; {}\nwait $job",
        run,
        each.ranks == 1 ? trainer_path() + " " + slow : mpiexec_words() + " " + rank_words(each.ranks, slow),
        each.command));
    EXPECT_EQ(result.exit_code, kExitData) << result.errors;
    expect_parts(result.errors, each.told);
    EXPECT_EQ(result.output.find("written: "), std::string::npos) << result.output;
    EXPECT_TRUE(std::filesystem::exists(each.results + "/model.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(each.results + "/summary.json"));
    EXPECT_EQ(std::filesystem::exists(run + "/model.safetensors"), each.results == run);
    for (const char* ending : {"", ".1", "-moved"}) std::filesystem::remove_all(run + ending);
  }
}

constexpr Index kRows = 200;

// Lines of one length, with a label that the others do not tell.
std::string some_table() {
  std::string text = "a,b,kind\n";
  for (Index row = 0; row < kRows; ++row)
    text += fmt::format("{:03},{:02},{}\n", row, row * 37 % 100, row * row % 4);
  return text;
}

class ResumeGuards : public testing::Test {
 protected:
  ResumeGuards() {
    write_file_atomically(directory_ / "run.toml",
                          "[run]\nprogress = \"none\"\n"
                          "[model]\nlayers = \"dense(4)\"\n"
                          "[train]\nglobal_batch = 20\nreplicas = 2\n");
  }

  // Each start of a run goes on for an epoch more.
  ProcessResult start(int ranks, const std::string& run, const std::string& flags, int epochs,
                      const std::string& allowed = "train.epochs") const {
    const std::string arguments =
        fmt::format("--config {} --run.dir {} --train.epochs {} --run.resume_allow {} {}",
                    directory_ / "run.toml", directory_ / run, epochs, allowed, flags);
    return ranks == 1 ? run_trainer(arguments) : run_trainer(ranks, arguments);
  }

  std::string content_of(const std::string& run) const {
    std::string content;
    for (const char* file :
         {"config.toml", "metrics.jsonl", "plan.txt", "summary.json", "model.safetensors"}) {
      content += read_file(directory_ / (run + "/" + file));
    }
    return content;
  }

  // The run was trained on data that `changed` are not and `moved` are. `what` is said to have changed.
  void expect_guarded(const std::string& run, const std::string& changed, const std::string& moved,
                      const std::string& what) const {
    const std::string before = content_of(run);
    expect_failed(start(2, run, changed, 2), kExitConfig, {"data.train: " + what, "run.resume_allow"});
    EXPECT_TRUE(content_of(run) == before) << "a refusal changed the run";
    expect_parts(succeeded(start(1, run, moved, 2)).output, {"goes on from"});
    succeeded(start(1, run, changed, 3, "train.epochs,data.train"));
  }

  TemporaryDirectory directory_;
};

TEST_F(ResumeGuards, OtherLabelsInFilesOfTheSameSizeAreRefused) {
  const IdxPair files = write_idx_pair(directory_ / "x", {.rows = kRows, .classes = 4, .compressed = false});
  const std::string images = read_file(files.images);
  const std::string labels = read_file(files.labels);
  const auto flags = [&](const std::string& train, const std::string& train_labels, const char* memory) {
    return fmt::format("--data.format idx --data.train {} --data.train_labels {} --data.memory {}", train,
                       train_labels, memory);
  };
  std::string exchanged = labels;
  const std::size_t last = labels.size() - 1;
  std::swap(exchanged[last], exchanged[labels.find_last_not_of(labels[last])]);
  write_file_atomically(directory_ / "exchanged", exchanged);
  write_idx(directory_ / "moved.gz", images);
  write_file_atomically(directory_ / "moved", images);
  write_file_atomically(directory_ / "moved-labels", labels);
  for (const char* memory : {"load", "stream"}) {
    const bool loaded = memory == std::string("load");
    succeeded(start(1, memory, flags(files.images, files.labels, memory), 1));
    expect_guarded(memory, flags(files.images, directory_ / "exchanged", memory),
                   flags(directory_ / (loaded ? "moved.gz" : "moved"), directory_ / "moved-labels", memory),
                   loaded ? "the labels of" : "the content of '" + (directory_ / "exchanged"));
  }
}

TEST_F(ResumeGuards, OtherFeaturesInATableOfTheSameSizeAreRefused) {
  const auto flags = [&](const std::string& file) {
    return fmt::format("--data.format csv --data.label kind --data.train {}", directory_ / file);
  };
  const std::string table = some_table();
  std::string changed = table;
  std::swap(changed[changed.size() - 5], changed[changed.size() - 4]);  // digits of b
  write_file_atomically(directory_ / "x.csv", table);
  write_file_atomically(directory_ / "changed.csv", changed);
  write_file_atomically(directory_ / "moved.csv", table);
  succeeded(start(1, "run", flags("x.csv"), 1));
  expect_guarded("run", flags("changed.csv"), flags("moved.csv"), "the features of");
}

TEST_F(ResumeGuards, ADirectoryOfCheckpointsIsThatOfOneRun) {
  const std::string synthetic =
      "--data.format synthetic --data.synthetic_rows 200 --data.synthetic_classes 4 --checkpoint.every '5 "
      "steps'";
  const std::string shared = synthetic + " --checkpoint.dir " + (directory_ / "shared");
  succeeded(start(1, "first", shared, 1));
  const std::string owner = read_file(directory_ / "shared/owner");
  const ProcessResult second = ended_with(start(2, "second", shared + " --train.lr 0.2", 1), kExitConfig);
  expect_parts(second.errors, {"checkpoint.dir '" + (directory_ / "shared"), directory_ / "first"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "second"));
  EXPECT_EQ(read_file(directory_ / "shared/owner"), owner);
  // The run itself goes on, also when it was moved; and another goes on from it elsewhere.
  std::filesystem::rename(directory_ / "first", directory_ / "moved");
  expect_parts(succeeded(start(2, "moved", shared, 2)).output,
               {"goes on from '" + (directory_ / "shared/step-")});
  const ProcessResult branch =
      succeeded(start(2, "branch", synthetic + " --run.resume " + (directory_ / "moved"), 3));
  expect_parts(branch.output, {"goes on from '" + (directory_ / "shared/step-")});
}

TEST_F(ResumeGuards, CheckpointsMayBeInTheRunDirectoryItself) {
  const std::string flags =
      "--data.format synthetic --data.synthetic_rows 200 --data.synthetic_classes 4 --checkpoint.every '5 "
      "steps' --checkpoint.dir " +
      (directory_ / "both");
  for (const int epochs : {1, 2}) succeeded(start(1, "both", flags, epochs));
}

}  // namespace
}  // namespace lockstep::test::resume_limits_test
