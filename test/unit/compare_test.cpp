// What trainer compare reads of run directories, whatever state they are in, and how it shows and sorts them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/runs/run_table.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/train/storage/run_directory.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

using test::error_text;
using test::expect_parts;

class Compare : public testing::Test {
 protected:
  RunDirectory make(const std::string& name, const std::string& train, const std::vector<double>& accuracies,
                    const std::string& measure = "accuracy") const {
    const RunDirectory run{directory_.path() / name};
    std::filesystem::create_directories(run.root);
    write_file_atomically(run.config(),
                          fmt::format("[run]\ndir = \"{}\"\n[data]\nvalidation_share = 0.1\n[train]\n"
                                      "early_stopping_metric = \"{}\"\n{}\n",
                                      name, measure, train));
    std::string lines = "{\"kind\":\"train\",\"step\":5,\"epoch\":0.5,\"samples_seen\":50,\"loss\":2.5}\n";
    for (std::size_t i = 0; i < accuracies.size(); ++i) {
      lines += fmt::format(
          "{{\"kind\":\"evaluation\",\"split\":\"validation\",\"step\":{},\"epoch\":1,\"samples_seen\":100,"
          "\"samples\":9,"
          "\"loss\":{},\"accuracy\":{},\"seconds\":1}}\n",
          10 * (i + 1), 1 - accuracies[i] / 2, accuracies[i]);
    }
    write_file_atomically(run.metrics(), lines);
    write_file_atomically(run.summary(),
                          fmt::format("{{\"steps\":{},\"seconds\":1.5}}", 10 * accuracies.size()));
    write_file_atomically(run.model(), "");
    return run;
  }
  void log(const RunDirectory& run, const std::string& lines) const {
    std::filesystem::remove(run.summary());
    write_file_atomically(run.log(), lines);
  }
  std::vector<RunRecord> all() const {
    std::vector<RunRecord> runs;
    for (const auto& run : find_runs({directory_.path().string()})) runs.push_back(read_run(run));
    return runs;
  }
  static std::vector<std::string> names(const std::vector<RunRecord>& runs) {
    std::vector<std::string> names;
    for (const RunRecord& run : runs) names.push_back(std::filesystem::path(run.name).filename().string());
    return names;
  }

  test::TemporaryDirectory directory_;
};

using Names = std::vector<std::string>;

TEST_F(Compare, ShowsTheKeysThatDifferAndTheBestAndLastValues) {
  make("a", "lr = 0.1", {0.5, 0.9, 0.7});
  make("b", "lr = 0.2", {0.5, 0.6, 0.8});
  std::vector<RunRecord> runs = all();
  EXPECT_EQ(differing_keys(runs), Names{"train.lr"});
  ASSERT_TRUE(runs[0].best);
  EXPECT_EQ(runs[0].best->value, 0.9);
  EXPECT_EQ(runs[0].best->step, 20);
  EXPECT_EQ(find_metric(runs[0].last.at("validation"), "accuracy"), 0.7);
  expect_parts(to_text(runs),
               {"train.lr", "best validation accuracy", "last accuracy", "0.9 ", "0.7 ", "done"});
  const auto json = parse_json<nlohmann::json>(to_json(runs));
  EXPECT_EQ(json[1]["config"]["train.lr"], 0.2);
  EXPECT_EQ(json[1]["best"]["value"], 0.8);
  EXPECT_EQ(json[1]["last"]["validation"]["accuracy"], 0.8);
  EXPECT_EQ(
      to_csv(runs).substr(0, to_csv(runs).find('\n')),
      "run,state,reason,train.lr,steps,seconds,best_split,best_measure,best_value,best_step,validation_loss,"
      "validation_accuracy");
}

// The test set chose nothing, so its values are shown, and runs are sorted by them; the best is that of the
// validation set.
TEST_F(Compare, ShowsTheTestSetWhereThereAreBoth) {
  const auto test_set = [](const RunDirectory& run, double accuracy) {
    write_file_atomically(
        run.metrics(), read_file(run.metrics()) +
                           fmt::format("{{\"kind\":\"evaluation\",\"split\":\"test\",\"step\":20,\"epoch\":1,"
                                       "\"samples_seen\":100,\"samples\":9,\"loss\":{},\"accuracy\":{},"
                                       "\"seconds\":1}}\n",
                                       0.125 + accuracy, accuracy));
  };
  test_set(make("a", "lr = 0.1", {0.5, 0.75}), 0.25);
  test_set(make("b", "lr = 0.2", {0.5, 0.625}), 0.375);
  std::vector<RunRecord> runs = all();
  EXPECT_EQ(to_text(runs).find("0.75 "), to_text(runs).rfind("0.75 ")) << "only as the best";
  expect_parts(to_text(runs), {"best validation accuracy", "0.375  ", "0.25  ", "0.5  ", "0.75"});
  EXPECT_EQ(to_csv(runs),
            "run,state,reason,train.lr,steps,seconds,best_split,best_measure,best_value,best_step,"
            "validation_loss,validation_accuracy,test_loss,test_accuracy\n" +
                runs[0].name + ",done,,0.1,20,1.5,validation,accuracy,0.75,20,0.625,0.75,0.375,0.25\n" +
                runs[1].name + ",done,,0.2,20,1.5,validation,accuracy,0.625,20,0.6875,0.625,0.5,0.375\n");
  const auto json = parse_json<nlohmann::json>(to_json(runs));
  EXPECT_EQ(json[0]["last"]["validation"]["accuracy"], 0.75);
  EXPECT_EQ(json[0]["last"]["test"]["accuracy"], 0.25);
  sort_runs(runs, "accuracy");
  EXPECT_EQ(names(runs), (Names{"b", "a"}));
  sort_runs(runs, "loss");
  EXPECT_EQ(names(runs), (Names{"a", "b"})) << "0.375 is less than 0.5";
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs), (Names{"a", "b"}));
}

TEST_F(Compare, SortsByTheKeptMeasureOrByWhatIsNamed) {
  make("a", "lr = 0.1", {0.9, 0.1});
  make("b", "lr = 0.02", {0.2, 0.3});
  make("c", "lr = 3", {0.4, 0.95});
  log(make("d", "lr = 1", {}), "");
  std::vector<RunRecord> runs = all();
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs), (Names{"c", "a", "b", "d"}));
  sort_runs(runs, "accuracy");
  EXPECT_EQ(names(runs), (Names{"c", "b", "a", "d"}));
  sort_runs(runs, "loss");
  EXPECT_EQ(names(runs), (Names{"c", "b", "a", "d"}));
  sort_runs(runs, "train.lr");
  EXPECT_EQ(names(runs), (Names{"b", "a", "d", "c"}));
  expect_parts(error_text<ConfigError>([&] { sort_runs(runs, "lr"); }), {"--sort", "'lr'", "train.lr"});
  expect_parts(error_text<ConfigError>([&] { sort_runs(runs, "acuracy"); }), {"did you mean 'accuracy'?"});
}

TEST_F(Compare, TheBestLossIsTheSmallest) {
  make("a", "", {0.9, 0.1}, "loss");
  EXPECT_EQ(all().front().best->value, 0.55);
  make("b", "keep = \"last\"", {0.9, 0.1}, "loss");
  EXPECT_EQ(all().back().best->value, 0.95) << "its model has the last weights";
}

TEST_F(Compare, ARunThatIsNotDoneIsARowWithItsReason) {
  const std::string time = "2026-11-25 13:03:12.140 ";
  log(make("failed", "", {0.5}), time + "info plan:\n" + time + "error the loss is not finite\n");
  log(make("again", "", {0.5}), time + "error the loss is not finite\n" + time + "info plan:\n");
  log(make("stopped", "", {0.5}),
      time + "info plan:\n" + time + "info stopped after 10 steps by SIGTERM; on it goes\n");
  const RunDirectory held = make("works", "", {0.5});
  log(held, "");
  const RunLock lock(held);
  write_file_atomically(make("summary", "", {0.5}).summary(), "{\"steps\"");
  write_file_atomically(make("config", "", {0.5}).config(), "[train]\nlr = \"fast\"\n");
  write_file_atomically(make("lines", "", {0.5}).metrics(), "{\"kind\":\"tr\n");
  std::filesystem::remove(make("model", "", {0.5}).model());
  std::map<std::string, std::string> states;
  for (const RunRecord& run : all()) {
    states[std::filesystem::path(run.name).filename().string()] = to_string(run.state) + ": " + run.reason;
  }
  EXPECT_EQ(states["failed"], "failed: the loss is not finite");
  EXPECT_EQ(states["again"], "unfinished: after step 10, without a last word");
  EXPECT_EQ(states["stopped"], "stopped: stopped after 10 steps by SIGTERM; on it goes");
  EXPECT_EQ(states["works"], "unfinished: after step 10: a trainer works on it");
  expect_parts(states["summary"], {"damaged: summary.json: it is no JSON"});
  expect_parts(states["config"], {"damaged: config.toml: ", "train.lr"});
  expect_parts(states["lines"], {"damaged: metrics.jsonl, line 1: it is no JSON"});
  EXPECT_EQ(states["model"], "damaged: it has no model.safetensors");
  expect_parts(to_text(all()), {"failed: the loss is not finite"});
}

TEST_F(Compare, StepsThatNoRunCanHaveTaken) {
  for (const char* steps : {"1e300", "-5", "1e999"}) {
    write_file_atomically(make("any", "", {0.5}).summary(),
                          fmt::format("{{\"steps\":{},\"seconds\":1.5}}", steps));
    const RunRecord run = all().front();
    EXPECT_GE(run.steps, 0) << steps;
    EXPECT_LE(run.steps, Index{1'000'000'000'000'000}) << steps;
  }
}

TEST_F(Compare, FindsRunsAtAnyDepthEachOnce) {
  make("sweep/trial-2", "", {0.5});
  make("sweep/trial-1", "", {0.5});
  std::filesystem::create_directories(directory_.path() / "empty");
  const std::string sweep = directory_ / "sweep";
  EXPECT_EQ(find_runs({sweep, sweep + "/trial-1/", directory_.path().string()}).size(), 2U);
  EXPECT_EQ(names(all()), (Names{"trial-1", "trial-2"}));
  const auto error = [](const std::string& name) {
    return error_text<ConfigError>([&] { find_runs({name}); });
  };
  expect_parts(error(directory_ / "empty"), {"there is no run in '"});
  expect_parts(error(directory_ / "none"), {"there is no run '"});
  expect_parts(error(sweep + "/trial-1/config.toml"), {"is no directory"});
}

}  // namespace
}  // namespace lockstep
