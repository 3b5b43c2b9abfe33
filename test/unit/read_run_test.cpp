// What every viewer reads of a run directory: the record, and for a run that has not ended its metrics.
#include "app/runs/read_run.h"

#include "lockstep/base/file.h"
#include "lockstep/train/storage/run_directory.h"
#include "support/temporary_directory.h"

namespace lockstep::read_run_test {

class ReadRun : public testing::Test {
 protected:
  ReadRun() {
    write_file_atomically(run_.config(), "[train]\nlr = 0.25\n");
    write_file_atomically(
        run_.metrics(),
        R"({"kind":"train","step":10,"epoch":0.5,"samples_seen":500,"loss":2,"samples_per_second":250})"
        "\n"
        R"({"kind":"evaluation","split":"validation","step":15,"epoch":0.75,"samples_seen":750,)"
        R"("loss":1,"confusion":[[1,2],[3,4]]})"
        "\n"
        R"({"kind":"train","step":20,"epoch":1,"samples_seen":1500,"loss":1,"samples_per_second":500})"
        "\n"
        R"({"kind":"evaluation","split":"validation","step":30,"epoch":1.5,"samples_seen":1500,)"
        R"("loss":3,"confusion":[[5,6],[7,8]]})"
        "\n");
  }
  void write(const RunRecord& record) const { write_file_atomically(run_.record(), to_json(record)); }
  const test::TemporaryDirectory directory_;
  const RunDirectory run_{directory_.path()};
};

TEST_F(ReadRun, ACompleteRunIsWhatItsRecordSays) {
  write_file_atomically(run_.model(), "");
  RunRecord record{
      .state = RunState::kDone, .progress = {.steps = 40, .samples = 2000, .epochs = 2}, .seconds = 16};
  record.kept = {.best = true, .step = 15};
  record.deciding["validation"] = {.measure = "loss", .value = 1, .step = 15};
  record.result = {{"steps", 40}};
  write(record);
  const ViewedRun run = read_run(run_.root);
  EXPECT_EQ(std::tuple(run.state(), run.record.progress.steps, run.record.seconds, run.value("train.lr")),
            std::tuple("done", 40, 16, "0.25"));
  EXPECT_EQ(run.value("no.such"), "");
  EXPECT_EQ(run.record.decides()->split, "validation");
  EXPECT_EQ(run.metrics.evaluations.at(0).confusion.at(0).at(1), 2) << "of the step that is kept";
}

// Those of ranks that there were before the last start.
TEST_F(ReadRun, TimesOfRanksAreThoseSinceTheLastStart) {
  write_file_atomically(
      run_.metrics(),
      read_file(run_.metrics()) +
          R"({"kind":"ranks","step":30,"epoch":1.5,"samples_seen":1500,"seconds":1,"compute":[1,1]})"
          "\n");
  RunRecord record{.state = RunState::kStopped};
  write(record);
  EXPECT_EQ(read_run(run_.root).metrics.ranks.ranks.size(), 2U);
  for (const auto& [starts, ranks] : {std::pair{std::vector<Index>{29}, 2U}, {{30}, 0U}, {{10, 30}, 0U}}) {
    record.launch.resumed_at = starts;
    write(record);
    EXPECT_EQ(read_run(run_.root).metrics.ranks.ranks.size(), ranks) << starts.back();
  }
}

// Steps behind the last line were made, too: the record of the end has them.
TEST_F(ReadRun, AStoppedRunIsAsFarAsItsRecordSays) {
  write({.state = RunState::kStopped,
         .exit_code = 7,
         .progress = {.steps = 33, .samples = 1650, .epochs = 1.65},
         .seconds = 5});
  const ViewedRun run = read_run(run_.root);
  EXPECT_EQ(std::tuple(run.state(), run.record.progress.steps, run.record.progress.samples),
            std::tuple("stopped", 33, 1650));
  EXPECT_EQ(run.record.progress.epochs, 1.65);
}

TEST_F(ReadRun, AKeyWithoutEffectHasNoValue) {
  write({.idle_keys = {"model.outputs"}});
  write_file_atomically(run_.config(), read_file(run_.config()) + "\n[model]\nlayers = \"dense(2)\"\n");
  EXPECT_EQ(read_run(run_.root).value("model.outputs"), "");
  EXPECT_EQ(read_run(run_.root).value("model.layers"), "dense(2)");
}

// 500 samples at 250 a second, and 1,000 at 500: four seconds in all, of which the evaluation after 750 comes
// after half a second of the second two.
TEST_F(ReadRun, OneThatHasNotEndedIsAsFarAsItsMetrics) {
  write({.state = RunState::kStopped,
         .plan = {.steps = 60},
         .progress = {.steps = 10, .samples = 500},
         .seconds = 1});
  const ViewedRun run = read_run(run_.root);
  EXPECT_EQ(run.state(), "stopped");
  EXPECT_EQ(run.record.plan.steps, 60);
  EXPECT_EQ(run.record.progress.steps, 30) << "the last line of any kind";
  EXPECT_EQ(std::tuple(run.record.progress.samples, run.record.progress.epochs, run.record.seconds),
            std::tuple(1500, 1.5, 4));
  EXPECT_EQ(run.record.last.at("validation").step, 30);
  EXPECT_EQ(run.record.last.at("validation").weights, "last");
  EXPECT_EQ(run.record.decides()->value, 1) << "the best loss";
  EXPECT_TRUE(run.record.kept.best);
  EXPECT_EQ(run.record.kept.step, 15);
  EXPECT_EQ(run.metrics.evaluations.at(0).table.seconds, (std::vector<double>{2.5, 4}));
  EXPECT_EQ(run.metrics.evaluations.at(0).confusion.at(0).at(1), 6) << "the last one";
}

}  // namespace lockstep::read_run_test
