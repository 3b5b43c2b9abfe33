// Overlap from the executable: the helper thread, and the share of the exchange that is hidden.
#include "support/small_experiment.h"
#include "support/trainer_runs.h"

namespace lockstep::test::overlap_test {
namespace {

using Json = nlohmann::json;

class Overlap : public SmallRuns {
 protected:
  // The summary of a run, long enough for the exchange to be measured alone, of a model of several buckets.
  Json train(const std::string& flags) {
    run_ = experiment_.fresh_run();
    const std::string long_enough = "--train.steps 40 --model.layers 'dense(300) relu dense(4)' ";
    output_ = succeed(2, words(run_, long_enough + flags)).output;
    return Json::parse(read_file(run_ + "/summary.json"));
  }

  std::string run_;
  std::string output_;
};

TEST_F(Overlap, TheHelperThreadChangesNoBits) {
  for (const std::string strategy : {"allreduce", "zero1"}) {
    const std::string flags =
        "--distribute.bucket_kib 1 --distribute.reduction ordered --distribute.strategy " + strategy;
    train(flags);
    const std::string expected = read_file(run_ + "/model.safetensors");
    train(flags + " --distribute.progress_thread true");
    EXPECT_TRUE(read_file(run_ + "/model.safetensors") == expected) << strategy;
  }
}

TEST_F(Overlap, TheHelperThreadIsRefusedWhereNothingLeavesEarly) {
  for (const std::string strategy : {"central_storage", "local_sgd"}) {
    expect_refused(2, "--distribute.progress_thread true --distribute.strategy " + strategy,
                   {"distribute.progress_thread has no effect"});
  }
}

TEST_F(Overlap, TheHiddenShareIsToldWhereBucketsLeaveEarly) {
  const Json time = train("--distribute.bucket_kib 1")["time"];
  ASSERT_TRUE(time.contains("hidden"));
  EXPECT_GE(time["hidden"].get<double>(), 0);
  EXPECT_LT(time["hidden"].get<double>(), 1);
  expect_parts(output_, {"hidden: "});
  EXPECT_FALSE(train("--distribute.bucket_kib 100000")["time"].contains("hidden"));
  EXPECT_FALSE(
      train("--distribute.bucket_kib 1 --distribute.strategy central_storage")["time"].contains("hidden"));
}

}  // namespace
}  // namespace lockstep::test::overlap_test
