// run.json: written and read as it was, of a run whose process is gone, and what proves that a run has ended.
#include "lockstep/train/storage/run_record.h"

#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/process.h"
#include "lockstep/base/timer.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test::run_record_test {

class RunRecordTest : public testing::Test {
 protected:
  void write(const RunRecord& record) const { write_file_atomically(run_.record(), to_json(record)); }
  RunRecord read() const { return read_run_record(run_).value(); }
  const TemporaryDirectory directory_;
  const RunDirectory run_{directory_.path()};
};

RunRecord full_record() {
  RunRecord record{.version = "1.2",
                   .commit = "abc",
                   .config = "0123",
                   .idle_keys = {"train.beta1", "train.beta2"},
                   .state = RunState::kStoppedEarly,
                   .reason = "no better",
                   .exit_code = 0,
                   .heartbeat = {.time = "2026-11-27T17:03:12Z", .host = "n1", .pid = 17},
                   .launch = {.command = "trainer --config a",
                              .time = "2026-11-27T17:03:11Z",
                              .resumed_at = {5, 10},
                              .replicas = 4,
                              .threads = 3,
                              .precision = "fp32",
                              .placement = "bound",
                              .hosts = {"n1", "n2"},
                              .cores = {"0-3", "4"},
                              .algorithm = "ring"},
                   .plan = {.ranks = 2,
                            .servers = 1,
                            .rows = 100,
                            .parameters = 7,
                            .steps = 60,
                            .samples = 600,
                            .epochs = 6,
                            .global_batch = 10,
                            .epoch_samples = 100,
                            .times_each_seen = 6.5,
                            .table = {{"steps", "60"}},
                            .sentences = {"Each step is one"},
                            .model = {{"layer", "output"}},
                            .stages = {{"stage"}, {"0"}}},
                   .measure = "auc",
                   .keeps_best = false,
                   .progress = {.steps = 30, .samples = 300, .epochs = 3},
                   .seconds = 1.25,
                   .warnings = {"slow"},
                   .more_warnings = 3,
                   .files = {"config.toml"}};
  record.last["test"] = {.step = 20, .epoch = 2, .weights = "best", .values = {{"loss", 0.5}, {"r2", NAN}}};
  record.figures["test"] = record.last["test"];
  record.deciding["validation"] = {.split = "validation", .measure = "auc", .value = 0.75, .step = 20};
  record.kept = {.best = true, .step = 20, .average = "uniform"};
  record.result = {{"steps", 30}};
  return record;
}

TEST_F(RunRecordTest, IsReadAsItWasWritten) {
  const RunRecord record = full_record(), again = parse_run_record(to_json(record));
  EXPECT_EQ(to_json(again), to_json(record));
  EXPECT_EQ(std::tuple(again.launch.hosts, again.decides()->split, again.decides()->value),
            std::tuple(record.launch.hosts, "validation", 0.75));
  EXPECT_EQ(again.progress.steps, 30);
  EXPECT_TRUE(std::isnan(again.last.at("test").values.at(1).second));
  EXPECT_EQ(record.launch.describe(), "2 ranks on 2 hosts, 4 replicas, 3 threads, precision fp32; bound");
}

TEST_F(RunRecordTest, WhatIsNoRecordIsRefused) {
  const std::string whole = to_json(full_record());
  const auto refused = [](const std::string& text) {
    return error_text<DataError>([&] { parse_run_record(text); });
  };
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string("7")})
    EXPECT_NE(refused(text), "") << text;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return refused(text.replace(text.find(from), from.size(), to));
  };
  expect_parts(changed("stopped early", "asleep"), {"\"asleep\" is no state of a run"});
  expect_parts(changed("\"seconds\": 1.25", "\"hours\": 1"),
               {"it has no 'seconds'; the run is of an earlier version"});
  expect_parts(changed("\"rows\": 100", "\"rows\": \"many\""), {"where a whole number belongs"});
  std::string many = whole;
  many.replace(many.find("\"rows\": 100"), 11, "\"rows\": -100");
  EXPECT_EQ(parse_run_record(many).plan.rows, 0) << "no run has a negative number of rows";
}

// The number of a process that is no more.
pid_t gone_process() {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  return gone;
}

TEST_F(RunRecordTest, ARunWhoseProcessIsGoneWasKilled) {
  const pid_t gone = gone_process();
  RunRecord record{.heartbeat = Heartbeat::now(), .progress = {.steps = 1234}};
  record.heartbeat.pid = gone;
  write(record);
  EXPECT_EQ(read().state, RunState::kKilled);
  expect_parts(read().reason, {"process " + std::to_string(gone) + " is gone", record.heartbeat.time});
  const RunLock lock(run_);
  EXPECT_EQ(read().state, RunState::kRunning) << "a trainer holds the lock";
}

TEST_F(RunRecordTest, ARunOnAnotherHostIsSilentAfterThreeHeartbeats) {
  RunRecord record;
  for (const pid_t pid : {1, gone_process()}) {  // which says nothing of the other host
    record.heartbeat = {.time = Heartbeat::now().time, .host = "another-host", .pid = pid};
    write(record);
    EXPECT_EQ(read().state, RunState::kRunning);
  }
  record.heartbeat.time = "2020-01-01T00:00:00Z";
  write(record);
  EXPECT_EQ(read().state, RunState::kSilent);
  expect_parts(read().reason, {"2020-01-01T00:00:00Z", "host another-host"});
  record.state = RunState::kStopped;
  write(record);
  EXPECT_EQ(read().state, RunState::kStopped) << "it said so itself";
}

TEST_F(RunRecordTest, OnlyACompleteRunWithItsModelTellsItsSteps) {
  RunRecord record{.state = RunState::kDone, .progress = {.steps = 20}};
  write(record);
  EXPECT_EQ(completed_steps(run_), std::nullopt) << "no model";
  write_file_atomically(run_.model(), "");
  EXPECT_EQ(completed_steps(run_), 20);
  record.state = RunState::kStoppedEarly;
  write(record);
  EXPECT_EQ(completed_steps(run_), 20);
  for (const RunState state : {RunState::kRunning, RunState::kStopped, RunState::kFailed}) {
    record.state = state;
    write(record);
    EXPECT_EQ(completed_steps(run_), std::nullopt) << to_string(state);
  }
  for (const char* text : {"", "{\"state\"", "[20]", "{}"}) {
    write_file_atomically(run_.record(), text);
    EXPECT_EQ(completed_steps(run_), std::nullopt) << text;
    EXPECT_TRUE(lost_files(run_).empty()) << text;
  }
}

TEST_F(RunRecordTest, NamesTheFilesThatWereLost) {
  RunRecord record{.state = RunState::kFailed};
  write(record);
  EXPECT_TRUE(lost_files(run_).empty());
  record.result["lost"] = {"log.txt", "the last checkpoint"};
  write(record);
  EXPECT_EQ(lost_files(run_), (std::vector<std::string>{"log.txt", "the last checkpoint"}));
  for (const char* lost : {"7", "[]", "[7, null]"}) {
    record.result["lost"] = nlohmann::ordered_json::parse(lost);
    write(record);
    EXPECT_TRUE(lost_files(run_).empty()) << lost;
  }
}

TEST_F(RunRecordTest, FiguresAreOfTheBestOrTheLastWeights) {
  RunRecord best{.measure = "auc"}, last{.measure = "auc", .keeps_best = false};
  for (RunRecord* record : {&best, &last}) {
    record->add_training({.steps = 10, .samples = 100}, 2.0, 50.0);
    EXPECT_EQ(record->decides()->split, "train");
    record->add_evaluation("validation", {.steps = 10, .epochs = 1}, {{"loss", 3.0}, {"auc", 0.75}});
    record->add_training({.steps = 20, .samples = 200}, 1.0, 100.0);
    record->add_evaluation("validation", {.steps = 20, .epochs = 2}, {{"loss", 1.0}, {"auc", 0.5}});
    EXPECT_EQ(record->seconds, 3);
    EXPECT_EQ(record->last.at("validation").step, 20);
    EXPECT_EQ(record->last.at("validation").weights, "last");
    EXPECT_EQ(record->decides()->measure, "auc");
  }
  EXPECT_EQ(best.figures.at("validation").step, 10);
  EXPECT_EQ(best.figures.at("validation").weights, "best");
  EXPECT_EQ(find_metric(best.figures.at("validation").values, "loss"), 3.0) << "of the same weights";
  EXPECT_EQ(last.figures.at("validation").step, 20);
  EXPECT_EQ(best.decides()->value, 0.75) << "the greater one";
  EXPECT_EQ(best.decides()->step, 10);
  EXPECT_TRUE(best.kept.best);
  EXPECT_EQ(best.kept.step, 10);
  EXPECT_EQ(last.decides()->value, 0.5);
  EXPECT_FALSE(last.kept.best);
  EXPECT_EQ(last.kept.step, 20);
  best.add_evaluation("test", {.steps = 10, .epochs = 1}, {{"auc", 0.625}});
  EXPECT_EQ(best.last.at("test").weights, "best");
  EXPECT_EQ(best.decides()->split, "validation");
  // An evaluation is ahead of the lines of training: what it is ahead counts at their rate until the next.
  best.add_evaluation("test", {.steps = 25, .samples = 250, .epochs = 2.5}, {{"auc", 0.5}});
  EXPECT_EQ(best.progress.samples, 250);
  EXPECT_DOUBLE_EQ(best.seconds, 3 + 0.5);
  best.add_training({.steps = 30, .samples = 300}, 1.0, 100.0);
  EXPECT_DOUBLE_EQ(best.seconds, 3 + 1) << "100 samples since the line of step 20";
}

TEST_F(RunRecordTest, TheFileFollowsTheRunAndEndsWithIt) {
  {
    RunRecordFile file({.plan = {.steps = 5}}, [this] { return run_.root; });
    EXPECT_EQ(read().plan.steps, 5) << "from the start";
    EXPECT_EQ(read().heartbeat.host, host_name());
    file.change([](RunRecord& record) { record.progress.steps = 3; });
    for (int tries = 0; tries < 500 && read().progress.steps != 3; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(read().progress.steps, 3) << "soon, by itself";
    EXPECT_FALSE(file.ended());
    file.end(run_.root, [](RunRecord& record) { record.state = RunState::kDone; });
    EXPECT_TRUE(file.ended());
  }
  EXPECT_EQ(read().state, RunState::kDone);
  RunRecordFile nowhere({}, [] { return std::nullopt; });
  EXPECT_THROW(nowhere.end("/nowhere/at/all", [](RunRecord&) {}), DataError);
}

// A file system that does not answer for three seconds.
TEST_F(RunRecordTest, NoChangeWaitsForAWrite) {
  std::atomic<bool> hangs = false;
  RunRecordFile file({}, [&] {
    for (int tries = 0; hangs && tries < 300; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return run_.root;
  });
  hangs = true;
  file.change([](RunRecord& record) { record.progress.steps = 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // it is being written by now
  const Stopwatch watch;
  file.change([](RunRecord& record) { record.progress.steps = 2; });
  EXPECT_LT(watch.seconds(), 0.5);
  hangs = false;
  file.end(run_.root, [](RunRecord& record) { record.state = RunState::kDone; });
  EXPECT_EQ(read().progress.steps, 2);
}

}  // namespace lockstep::test::run_record_test
