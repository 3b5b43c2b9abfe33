// A crash of the machine, which loses what was not synced, at any call with which a run changes its files:
// the next start takes the newest whole checkpoint or the one before, never a damaged one, and no fresh start
// where a checkpoint was reported; files of the run are old or new, never half. The calls of a real run are
// recorded once. For a crash before each of them, and for each way of losing what was not synced, what the
// disk holds is made again, and the first part of a start looks at it, in this process; the real trainer goes
// on from some. LOCKSTEP_CRASHES in the environment: how many random losses for each call.
#include <spdlog/spdlog.h>

#include "app/training/resume_state.h"
#include "lockstep/base/log.h"
#include "lockstep/report/live/run_output.h"
#include "lockstep/train/storage/run_record.h"
#include "support/crashes.h"
#include "support/thread_ranks.h"
#include "support/trainer_runs.h"

namespace lockstep::test::crash_test {
namespace {

class Crash : public testing::Test {
 protected:
  Crash() {
    spdlog::default_logger()->set_level(spdlog::level::off);
    std::filesystem::create_directory(place_);
  }

  std::string run() const { return (place_ / run_).string(); }
  RunDirectory run_directory() const { return {run()}; }
  CheckpointDirectory checkpoints() const {
    return CheckpointDirectory(checkpoints_.empty() ? run_directory().checkpoints() : place_ / checkpoints_);
  }
  std::string arguments(const std::string& flags = "") const {
    const std::string elsewhere =
        checkpoints_.empty() ? "" : "--checkpoint.dir " + checkpoints().root().string() + " ";
    const std::string arguments = saving_arguments(experiment_, run(), elsewhere + flags, config_.empty());
    if (!config_.empty()) write_file_atomically(experiment_.directory() / "run.toml", config_);
    return arguments;
  }

  // A run in the place, to its end.
  CrashRecording record(int ranks, const std::string& flags, Index steps) const {
    return record_run(ranks, arguments(flags), place_, newest(), steps);
  }
  Index newest() const {
    const std::vector<Index> steps = checkpoints().steps();
    return steps.empty() ? kNoStep : steps.front();
  }

  void expect_each_crash_is_survived(const CrashRecording& recording) {
    crash_at_every_call(recording, place_, [&](const auto&... state) { expect_run_goes_on(state...); });
  }

  // The trainer ends a run that crashed as one that nothing befell.
  void expect_same_end(const CrashRecording& recording, const std::string& flags) {
    for (const std::size_t quarter : {1U, 2U, 3U}) {
      const std::size_t calls = recording.calls.size() * quarter / 4;
      SCOPED_TRACE(fmt::format("crash before call {} ({})", calls, describe(recording.calls[calls])));
      crash_after(calls, recording, place_);
      const ProcessResult result = succeed(arguments(flags));
      EXPECT_EQ(result.errors, "");
      EXPECT_TRUE(unfinished_names(run()).empty()) << testing::PrintToString(unfinished_names(run()));
      const std::string model = model_of(run()), metrics = metrics_of(run());
      write_tree(place_, recording.after);
      EXPECT_TRUE(model == model_of(run()));
      EXPECT_EQ(metrics, metrics_of(run()));
    }
  }

  // ---- what is promised ----

  void expect_run_goes_on(const CrashRecording& recording, const Promise& promise, const FileTree& tree) {
    expect_old_or_new(recording, tree);
    expect_whole_checkpoints();
    Config config;
    config.run.dir = run();
    if (!checkpoints_.empty()) config.checkpoint.dir = checkpoints().root();
    ResumeState resume;
    try {
      run_thread_ranks(1, [&](Communicator& comm) { resume = find_resume_state(comm, config); });
    } catch (const Error& error) {
      ADD_FAILURE() << "the next start fails: " << error.what();
      return;
    }
    expect_start(recording, promise, resume);
  }

  void expect_start(const CrashRecording& recording, const Promise& promise, const ResumeState& resume) {
    const Index from = resume.checkpoint ? resume.checkpoint->header().progress.steps : kNoStep;
    EXPECT_GE(from, promise.reported) << "a checkpoint that was reported is lost";
    EXPECT_LE(from, promise.renamed);
    EXPECT_EQ(from, newest()) << "a checkpoint was put aside";
    if (promise.ended != kNoStep) {
      EXPECT_EQ(resume.completed_steps, promise.ended);
    }
    if (resume.completed_steps == recording.steps) expect_results(recording);
    if (from == kNoStep) return;
    EXPECT_FALSE(resume.is_new);
    EXPECT_TRUE(std::filesystem::exists(run_directory().config()));
    // Lines up to the checkpoint are all there.
    { const MetricsFile metrics(run_directory().metrics(), resume.metrics_bytes()); }
    const std::string lines = read_file(run_directory().metrics());
    EXPECT_EQ(std::ssize(lines), resume.metrics_bytes());
    EXPECT_TRUE(recording.after.at(run_ + "/metrics.jsonl")->starts_with(lines)) << lines;
  }

  // Of a run that is complete.
  void expect_results(const CrashRecording& recording) const {
    for (const auto& name : {RunDirectory{}.model(), RunDirectory{}.metrics()}) {
      EXPECT_TRUE(read_file(run_directory().root / name) == *recording.after.at(run_ + "/" + name.string()))
          << "the run is complete, but not its " << name;
    }
  }

  // Where there is a manifest there is a whole checkpoint.
  void expect_whole_checkpoints() const {
    for (const Index step : checkpoints().steps()) {
      if (!std::filesystem::exists(checkpoints().finished(step) / kManifestName)) continue;
      EXPECT_NO_THROW(CheckpointReader(checkpoints().finished(step)).verify(1, 0)) << step;
    }
    if (const auto best = checkpoints().best()) {
      EXPECT_NO_THROW(CheckpointReader(checkpoints().finished(*best)).verify(1, 0)) << "best: " << *best;
    }
  }

  // As it was before the run, or as it is after it; and what was there is never gone.
  void expect_old_or_new(const CrashRecording& recording, const FileTree& tree) const {
    const RunDirectory names;
    const auto text_in = [](const FileTree& all, const std::string& path) {
      const auto found = all.find(path);
      return found == all.end() ? std::nullopt : found->second;
    };
    for (const auto& name : {names.config(), names.schema(), names.plan(), names.ranks(), names.model(),
                             names.summary(), names.id(), names.checkpointed()}) {
      const std::string path = run_ + "/" + name.string();
      const auto text = text_in(tree, path);
      const auto before = text_in(recording.before, path);
      EXPECT_TRUE(text == before || text == text_in(recording.after, path) ||
                  (!text && name == names.summary()))
          << path << (text ? " is neither old nor new" : " is gone");
    }
  }

  // Data that have a schema.
  void use_table() {
    const std::string table = experiment_.directory() / "table.csv";
    std::string rows = "x,y,kind\n";
    for (int i = 0; i < 203; ++i) rows += fmt::format("{},{},{}\n", i * 37 % 101, i * 61 % 89, i * i % 4);
    write_file_atomically(table, rows);
    config_ = fmt::format(
        "[data]\ntrain = \"{0}\"\nvalidation = \"{0}\"\ntest = \"{0}\"\nlabel = \"kind\"\n"
        "[model]\nlayers = \"dense(16) relu dense(2)\"\n"
        "[train]\noptimizer = \"sgd\"\nlr = 0.05\nglobal_batch = 24\nreplicas = 8\n",
        table);
  }

  const SmallExperiment experiment_;
  const std::filesystem::path place_ = experiment_.directory().path() / "place";
  std::string run_ = "run";
  std::string checkpoints_;  // "": in the run directory
  std::string config_;       // "": that of the experiment
};

TEST_F(Crash, OfANewRunOnATable) {
  run_ = "runs/of/today";
  use_table();
  const CrashRecording recording = record(1, "", 9);
  EXPECT_TRUE(recording.after.contains(run_ + "/schema.json"));
  expect_each_crash_is_survived(recording);
  expect_same_end(recording, "");
}

// In a directory that somebody has just made.
TEST_F(Crash, OfANewRunOnTwoRanksWithItsCheckpointsElsewhere) {
  checkpoints_ = "checkpoints/of/today";
  std::filesystem::create_directory(run());
  CrashRecording recording = record(2, "", 9);
  recording.before.clear();
  recording.calls.insert(recording.calls.begin(), {.kind = "mkdir", .path = run_});
  expect_each_crash_is_survived(recording);
  expect_same_end(recording, "");
}

TEST_F(Crash, OfARunThatGoesOn) {
  succeed(arguments());
  const std::string flags = "--train.epochs 2 --run.resume_allow train.epochs";
  const CrashRecording recording = record(1, flags, 18);
  expect_each_crash_is_survived(recording);
  expect_same_end(recording, flags);
}

// What was there is kept whole, under one name or another, also when it is tried again. The new run makes no
// checkpoints, with which its metrics would be synced.
TEST_F(Crash, OfARestart) {
  succeed(arguments());
  const std::string flags = "--checkpoint.every never --train.keep last --run.resume restart";
  const CrashRecording recording = record(1, flags, 9);
  const FileTree old = subtree(recording.before, run_);
  Config config;
  config.run.dir = run();
  config.run.resume = kRestart;
  crash_at_every_call(recording, place_, [&](const CrashRecording&, const Promise&, const FileTree& tree) {
    EXPECT_TRUE(subtree(tree, "run") == old || subtree(tree, "run.1") == old) << "lost by the crash";
    const bool is_old = subtree(tree, run_) == old;
    if (!is_old && completed_steps(run_directory()) == recording.steps) expect_results(recording);
    ResumeState resume;
    try {
      run_thread_ranks(1, [&](Communicator& comm) { resume = find_resume_state(comm, config); });
      prepare(resume, config);
    } catch (const Error& error) {
      ADD_FAILURE() << "the next start fails: " << error.what();
    }
    EXPECT_TRUE(subtree(read_tree(place_), "run.1") == old) << "lost by the next start";
    EXPECT_TRUE(resume.is_new);
  });
  expect_same_end(recording, flags);
}

}  // namespace
}  // namespace lockstep::test::crash_test
