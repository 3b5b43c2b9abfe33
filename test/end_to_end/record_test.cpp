// run.json of real runs, in each way to end, and what viewers make of it.
#include <signal.h>

#include "support/running_job.h"
#include "support/saved_runs.h"
#include "support/small_experiment.h"
#include "support/trainer_runs.h"

namespace lockstep::test::record_test {
namespace {

using Json = nlohmann::json;

class RecordTest : public SmallRuns {
 protected:
  std::string arguments(const std::string& flags = "") const {
    return saving_arguments(experiment_, run_, "--train.keep best " + flags);
  }
  ProcessResult train(int ranks, const std::string& flags = "") const {
    return run_trainer(ranks, arguments(flags));
  }
  Json record() const { return Json::parse(read_file(run_ + "/run.json")); }
  Json status() const { return json_of(run_trainer("status " + run_ + " --json -")).at(0); }
  // Until the record says that the run is as far.
  bool reaches(Index steps) const {
    for (int tries = 0; tries < 600; ++tries) {
      if (std::filesystem::exists(run_ + "/run.json") && record()["progress"]["steps"] >= steps) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  const std::string run_ = experiment_.fresh_run();
};

TEST_F(RecordTest, OfACompleteRunHasWhatItsOtherFilesHave) {
  const ProcessResult result = succeeded(train(2));
  const Json summary = Json::parse(read_file(run_ + "/summary.json"));
  const Json found = record();
  EXPECT_EQ(found["state"], "done");
  EXPECT_EQ(found["reason"], "");
  EXPECT_EQ(found["exit_code"], 0);
  EXPECT_EQ(found["result"], summary);
  EXPECT_EQ(found["config"], summary["config"]);
  EXPECT_EQ(found["progress"]["steps"], summary["steps"]);
  EXPECT_EQ(found["plan"]["ranks"], 2);
  EXPECT_EQ(found["plan"]["steps"], 9);
  EXPECT_EQ(found["plan"]["rows"], 203);
  EXPECT_EQ(found["launch"]["hosts"].size(), 2U);
  EXPECT_EQ(found["launch"]["resumed_at"], Json::array());
  EXPECT_EQ(found["kept"]["step"], summary["kept"]["step"]);
  EXPECT_EQ(found["deciding"]["validation"]["value"], summary["kept"]["value"]);
  EXPECT_EQ(found["last"]["test"]["values"]["loss"], summary["evaluation"]["loss"]);
  EXPECT_EQ(found["last"]["test"]["weights"], "best");
  for (const Json& name : found["files"])
    EXPECT_TRUE(std::filesystem::exists(run_ + "/" + name.get<std::string>())) << name;
  EXPECT_EQ(status()["state"], "done");
  EXPECT_EQ(status()["steps"], 9);
}

TEST_F(RecordTest, OfARunThatWasKilledSaysSoAndTheNextStartGoesOn) {
  const std::string slow = "--train.epochs 4 --debug.delay_rank 0 --debug.delay_ms 100";
  {
    RunningJob job(2, arguments(slow));
    ASSERT_TRUE(reaches(6)) << job.errors();
    EXPECT_EQ(status()["state"], "running");
    EXPECT_EQ(status()["planned_steps"], 36);
    ::kill(record()["heartbeat"]["pid"].get<pid_t>(), SIGKILL);
    EXPECT_NE(job.wait(60), 0);
  }
  EXPECT_EQ(record()["state"], "running") << "nobody was left to write it";
  EXPECT_EQ(status()["state"], "killed");
  EXPECT_TRUE(record()["exit_code"].is_null());
  const Index saved = newest_checkpoint(run_);
  succeeded(train(2, "--train.epochs 4"));
  EXPECT_EQ(status()["state"], "done");
  EXPECT_EQ(record()["launch"]["resumed_at"], Json({saved}));
  EXPECT_EQ(record()["progress"]["steps"], 36);
}

TEST_F(RecordTest, OfARunThatStoppedOrFailedHasTheReason) {
  {
    RunningJob job(2, arguments("--train.epochs 40 --debug.delay_rank 0 --debug.delay_ms 100"));
    ASSERT_TRUE(reaches(3)) << job.errors();
    ::kill(record()["heartbeat"]["pid"].get<pid_t>(), SIGTERM);
    const int exit_code = job.wait(60);
    EXPECT_EQ(exit_code, record()["exit_code"]) << job.errors();
  }
  EXPECT_EQ(record()["state"], "stopped");
  expect_parts(record()["reason"].get<std::string>(), {" steps by SIGTERM"});
  const ProcessResult failed = train(
      2,
      "--train.epochs 40 --debug.nan_replica 0 --debug.nan_step 200 --debug.nan_steps 1 --train.on_nan stop");
  ASSERT_NE(failed.exit_code, 0);
  EXPECT_EQ(record()["state"], "failed") << failed.errors;
  EXPECT_EQ(record()["exit_code"], failed.exit_code);
  EXPECT_NE(failed.errors.find(record()["reason"].get<std::string>()), std::string::npos)
      << "in the words of the error";
  EXPECT_EQ(record()["launch"]["resumed_at"].size(), 1U);
}

// No viewer reads the log, and a run of an earlier program has no record.
TEST_F(RecordTest, OnlyTheRecordTellsHowARunEnded) {
  succeeded(train(1));
  for (const char* name : {"log.txt", "plan.txt", "ranks.txt", "summary.json"})
    std::filesystem::remove(run_ + "/" + name);
  EXPECT_EQ(status()["state"], "done");
  const Json compared = json_of(run_trainer("compare " + run_ + " --json -"));
  EXPECT_EQ(compared[0]["state"], "done");
  const Json page = json_of(run_trainer("report " + run_ + " --json -"))["runs"][0];
  EXPECT_EQ(page["state"], "done");
  EXPECT_FALSE(page["plan"].empty());
  EXPECT_EQ(page["placement"].size(), 1U);
  std::filesystem::remove(run_ + "/run.json");
  EXPECT_EQ(status()["state"], "unknown");
  EXPECT_EQ(status()["steps"], 9);
  EXPECT_EQ(json_of(run_trainer("compare " + run_ + " --json -"))[0]["best"]["split"], "validation");
}

}  // namespace
}  // namespace lockstep::test::record_test
