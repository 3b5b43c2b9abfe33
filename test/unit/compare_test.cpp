// What trainer compare reads of run directories, whatever state they are in, and how it shows and sorts them.
#include "app/runs/read_run.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/train/storage/run_directory.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test::compare_test {

class Compare : public testing::Test {
 protected:
  RunDirectory make(const std::string& name, const std::string& train, const std::vector<double>& accuracies,
                    const std::string& measure = "accuracy") const {
    const RunDirectory run{directory_.path() / name};
    std::filesystem::create_directories(run.root);
    write_file_atomically(run.config(),
                          fmt::format("[run]\ndir = \"{}\"\n[data]\nvalidation = 'share(0.1)'\n[train]\n"
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
    record(run, {.state = RunState::kDone,
                 .measure = measure,
                 .keeps_best = train.find("keep") == std::string::npos});
    write_file_atomically(run.model(), "");
    return run;
  }
  // As a run writes it that has made the lines which are there.
  static void record(const RunDirectory& run, RunRecord record) {
    read_metrics_lines(run.metrics(),
                       [&](const MetricsLine& line) { add_line(record, line, [](Index) { return ""; }); });
    record.seconds = 1.5;
    write_file_atomically(run.record(), to_json(record));
  }
  std::vector<ViewedRun> all() const { return read_runs(find_runs({directory_.path().string()})); }
  static std::vector<std::string> names(const std::vector<ViewedRun>& runs) {
    std::vector<std::string> names;
    for (const ViewedRun& run : runs) names.push_back(std::filesystem::path(run.name).filename().string());
    return names;
  }
  TemporaryDirectory directory_;
};

using Names = std::vector<std::string>;

TEST_F(Compare, ShowsTheKeysThatDifferAndTheBestAndLastValues) {
  make("a", "lr = 0.1", {0.5, 0.9, 0.7});
  make("b", "lr = 0.2\n[checkpoint]\nkeep = 5", {0.5, 0.6, 0.8});
  std::vector<ViewedRun> runs = all();
  EXPECT_EQ(differing_keys(runs), (Names{"train.lr", "checkpoint.keep"}));
  ASSERT_NE(runs[0].record.decides(), nullptr);
  EXPECT_EQ(runs[0].record.decides()->value, 0.9);
  EXPECT_EQ(runs[0].record.decides()->step, 20);
  EXPECT_EQ(find_metric(runs[0].record.last.at("validation").values, "accuracy"), 0.7);
  const std::string text = to_text(runs, 80);
  EXPECT_EQ(text,
            "     best                  last\n"
            "     validation            validation  validation\n"
            "run  accuracy    train.lr  accuracy    loss        at step  steps\n"
            "a    0.9         0.1       0.7         0.55        20       30\n"
            "b    0.8         0.2       0.8         0.6         30       30\n");
  EXPECT_EQ(to_text(runs, 65), text) << "there is room for all columns";
  EXPECT_NE(to_text(runs, 64).find("not shown: steps; --all"), std::string::npos);
  expect_parts(to_text(runs, kAllColumns), {"run.dir", "done"});
  const auto json = parse_json<nlohmann::json>(compared_json(runs));
  EXPECT_EQ(json[1]["config"]["train.lr"], 0.2);
  EXPECT_EQ(json[1]["best"]["value"], 0.8);
  EXPECT_EQ(json[0]["figures"]["validation"]["accuracy"], 0.9) << "of the kept weights";
  EXPECT_EQ(json[0]["last"]["validation"]["accuracy"], 0.7);
  EXPECT_EQ(json[1]["last"]["validation"]["accuracy"], 0.8);
  EXPECT_EQ(
      to_csv(runs).substr(0, to_csv(runs).find('\n')),
      "run,state,reason,train.lr,run.dir,checkpoint.keep,steps,seconds,best_split,best_measure,best_value,"
      "best_step,commit,ranks,cpu,weights,validation_loss,validation_accuracy,last_validation_loss,last_"
      "validation_accuracy");
}

TEST_F(Compare, TheLastWeightsHaveNoColumnsWhereTheyAreKept) {
  make("a", "", {0.5, 0.75});
  make("b", "keep = \"last\"", {0.9, 0.7});
  const std::string text = to_text(all(), 80);
  EXPECT_EQ(text.substr(0, text.find('\n')).find("last"), std::string::npos) << text;
  EXPECT_EQ(to_csv(all()).find("last_"), std::string::npos);
}

// The test set chose nothing, so its values are shown and sort runs; the best is of the validation set.
TEST_F(Compare, ShowsTheTestSetWhereThereAreBoth) {
  const auto test_set = [](const RunDirectory& run, double accuracy) {
    write_file_atomically(
        run.metrics(), read_file(run.metrics()) +
                           fmt::format("{{\"kind\":\"evaluation\",\"split\":\"test\",\"step\":20,\"epoch\":1,"
                                       "\"samples_seen\":100,\"samples\":9,\"loss\":{},\"accuracy\":{},"
                                       "\"seconds\":1}}\n",
                                       0.125 + accuracy, accuracy));
    record(run, {.state = RunState::kDone, .measure = "accuracy"});
  };
  test_set(make("a", "lr = 0.1", {0.5, 0.75}), 0.25);
  test_set(make("b", "lr = 0.2", {0.5, 0.625}), 0.375);
  std::vector<ViewedRun> runs = all();
  const std::string text = to_text(runs, 80);
  EXPECT_EQ(text.find("0.75 "), text.rfind("0.75 ")) << "only as the best";
  expect_parts(text, {"best", "validation", "test loss", "0.375  ", "0.25  ", "0.5  ", "0.75"});
  const std::string weights = fmt::format("{:016x}", hash_text(""));
  EXPECT_EQ(to_csv(runs),
            "run,state,reason,train.lr,run.dir,steps,seconds,best_split,best_measure,best_value,best_step,"
            "commit,ranks,cpu,weights,test_loss,test_accuracy,validation_loss,validation_accuracy\n" +
                runs[0].name + ",done,,0.1,a,20,1.5,validation,accuracy,0.75,20,,0,," + weights +
                ",0.375,0.25,0.625,0.75\n" + runs[1].name +
                ",done,,0.2,b,20,1.5,validation,accuracy,0.625,20,,0,," + weights +
                ",0.5,0.375,0.6875,0.625\n");
  const auto json = parse_json<nlohmann::json>(compared_json(runs));
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
  make("d", "lr = 1", {});
  std::vector<ViewedRun> runs = all();
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs), (Names{"c", "a", "b", "d"})) << "d has no evaluation";
  sort_runs(runs, "accuracy");
  EXPECT_EQ(names(runs), (Names{"c", "a", "b", "d"})) << "of the kept weights";
  sort_runs(runs, "loss");
  EXPECT_EQ(names(runs), (Names{"c", "a", "b", "d"}));
  sort_runs(runs, "train.lr");
  EXPECT_EQ(names(runs), (Names{"b", "a", "d", "c"}));
  sort_runs(runs, "steps");
  EXPECT_EQ(names(runs), (Names{"d", "b", "a", "c"})) << "others stay as they were";
  sort_runs(runs, "run");
  EXPECT_EQ(names(runs), (Names{"a", "b", "c", "d"}));
  runs[1].record.seconds = 1;
  sort_runs(runs, "seconds");
  EXPECT_EQ(names(runs).front(), "b");
  expect_parts(error_text<ConfigError>([&] { sort_runs(runs, "lr"); }), {"--sort", "'lr'", "train.lr"});
  expect_parts(error_text<ConfigError>([&] { sort_runs(runs, "acuracy"); }), {"did you mean 'accuracy'?"});
}

// Whatever differs, the table fits, begins with what explains most, and says what it leaves out.
TEST_F(Compare, FitsTheTerminalAndNamesTheColumnsThatDoNot) {
  make("one", "lr = 0.1\nmomentum = 0.5\noptimizer = \"sgd\"\nglobal_batch = 8\nepochs = 3", {0.5, 0.75});
  make("two", "lr = 0.2\nweight_decay = 0.5\noptimizer = \"adam\"\nglobal_batch = 16\nepochs = 4", {0.25});
  const std::string text = to_text(all(), 80);
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(text.find('\n', begin) - begin, 80U) << text;
  EXPECT_LT(text.find("optimizer"), text.find("train.lr")) << text;
  EXPECT_LT(text.find("train.lr"), text.find("batch")) << text;
  expect_parts(to_text(all(), 40), {"not shown: ", "train.epochs", "--all shows all"});
  EXPECT_EQ(to_text(all(), kAllColumns).find("not shown"), std::string::npos);
}

TEST_F(Compare, RunsOfOtherDataOrLossesHaveATableOfTheirOwn) {
  make("a", "loss = \"huber\"", {0.5});
  make("b", "loss = \"mean_squared_error\"", {0.25});
  make("c", "loss = \"huber\"", {0.75});
  std::vector<ViewedRun> runs = all();
  sort_runs(runs, "best");
  const std::string text = to_text(runs, 80);
  expect_parts(text, {", loss: huber\n", ", loss: mean_squared_error\n"});
  EXPECT_LT(text.find("0.75"), text.find("0.5 ")) << text;
  EXPECT_LT(text.find("0.5 "), text.find("0.25")) << text;
}

TEST_F(Compare, TheBestLossIsTheSmallest) {
  make("a", "", {0.9, 0.1}, "loss");
  EXPECT_EQ(all().front().record.decides()->value, 0.55);
  make("b", "keep = \"last\"", {0.9, 0.1}, "loss");
  EXPECT_EQ(all().back().record.decides()->value, 0.95) << "its model has the last weights";
}

TEST_F(Compare, ARunThatIsNotDoneIsARowWithItsReason) {
  record(make("failed", "", {0.5}), {.state = RunState::kFailed, .reason = "the loss is not finite"});
  record(make("stopped", "", {0.5}), {.state = RunState::kStopped, .reason = "after 10 steps by SIGTERM"});
  record(make("early", "", {0.5}),
         {.state = RunState::kStoppedEarly, .reason = "no better loss in 5 epochs"});
  write_file_atomically(make("record", "", {0.5}).record(), "{\"steps\"");
  std::filesystem::remove(make("old", "", {0.5}).record());
  write_file_atomically(make("config", "", {0.5}).config(), "[train]\nlr = \"fast\"\n");
  write_file_atomically(make("lines", "", {0.5}).metrics(), "{\"kind\":\"tr\n");
  std::filesystem::remove(make("model", "", {0.5}).model());
  std::map<std::string, std::string> states;
  for (const ViewedRun& run : all()) states[run.short_name()] = run.state() + ": " + run.record.reason;
  EXPECT_EQ(states["failed"], "failed: the loss is not finite");
  EXPECT_EQ(states["stopped"], "stopped: after 10 steps by SIGTERM");
  EXPECT_EQ(states["early"], "stopped early: no better loss in 5 epochs");
  expect_parts(states["record"], {"damaged: run.json: it is no JSON"});
  expect_parts(states["old"],
               {"damaged: run.json: it is missing; the run is of an earlier version of the program"});
  expect_parts(states["config"], {"damaged: config.toml: ", "train.lr"});
  expect_parts(states["lines"], {"damaged: metrics.jsonl, line 1: it is no JSON"});
  EXPECT_EQ(states["model"], "damaged: it has no model.safetensors");
  expect_parts(to_text(all(), 200), {"failed: the loss is not finite"});
}

// A byte is easier to guess than a character of three bytes, so losses of a token rank other texts.
TEST_F(Compare, RunsOfOtherTokensAreRankedByBitsOfACharacter) {
  const auto of_tokens = [&](const std::string& name, const std::string& tokens, double loss, double bits) {
    const RunDirectory run = make(name, "", {}, "loss");
    write_file_atomically(run.config(), fmt::format("[data]\nformat = \"text\"\ntrain = \"a.txt\"\n"
                                                    "tokens = \"{}\"\nwindow = 8\n",
                                                    tokens));
    write_file_atomically(run.metrics(),
                          fmt::format("{{\"kind\":\"evaluation\",\"split\":\"validation\",\"step\":20,"
                                      "\"epoch\":1,\"samples_seen\":100,\"loss\":{},"
                                      "\"bits_per_character\":{}}}\n",
                                      loss, bits));
    record(run, {.state = RunState::kDone});
  };
  of_tokens("bytes", "bytes", 1, 3);
  of_tokens("characters", "characters", 1.5, 2);
  std::vector<ViewedRun> runs = all();
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs), (Names{"characters", "bytes"}));
  expect_parts(to_csv(runs), {",validation,bits_per_character,2,20,"});
  EXPECT_EQ(to_text(runs, 80).find("loss: "), std::string::npos) << "one table has both";
  std::string lines = read_file(directory_ / "bytes/metrics.jsonl");
  lines.replace(lines.find("bits_per_character"), 4, "bots");
  write_file_atomically(directory_ / "bytes/metrics.jsonl", lines);
  record({directory_.path() / "bytes"}, {.state = RunState::kDone});
  runs = all();
  sort_runs(runs, "best");
  expect_parts(to_text(runs, 80),
               {"loss: softmax_cross_entropy of bytes (bits_per_character is not measured)\n"});
  of_tokens("words", "words(9)\"\nunknown = \"replace", 1, 1);
  runs = all();
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs).front(), "characters") << "tokens that another stands for are not paid for";
  expect_parts(to_text(runs, 80), {" of words(9) (bits_per_character is not of all tokens)\n"});
  std::filesystem::remove_all(directory_ / "words");
  of_tokens("bytes", "characters", 1, 3);
  runs = all();
  sort_runs(runs, "best");
  EXPECT_EQ(names(runs), (Names{"bytes", "characters"})) << "of the same tokens the loss decides";
}

TEST_F(Compare, ALongNameKeepsItsEnd) {
  const std::string stem = "an_experiment_with_a_long_name_and_its_learning_rate_";
  make(stem + "0.1", "lr = 0.1", {0.5});
  make(stem + "0.2", "lr = 0.2", {0.75});
  expect_parts(to_text(all(), 80), {"..._and_its_learning_rate_0.1 ", "..._and_its_learning_rate_0.2 "});
}

TEST_F(Compare, ATrialThatWasRefusedIsARunWithItsReason) {
  const RunDirectory first = make("sweep/trial-0001", "", {0.5});
  record(first, {.idle_keys = {"data.tokens"}, .state = RunState::kDone});
  write_file_atomically(first.config(), "");
  write_file_atomically(directory_.path() / "sweep/sweep.toml", "");
  std::filesystem::create_directories(directory_.path() / "sweep/rows");
  const std::string row = directory_ / "sweep/rows/trial-000";
  write_file_atomically(row + "1.json", R"({"state": "done"})");
  write_file_atomically(row + "2.json", R"({"state": "failed", "exit_code": 2, "reason": "train.lr is 0"})");
  write_file_atomically(row + "3.json", "[");
  write_file_atomically(row + "4.json", R"({"state": "done", "settings": {"train.lr": "0.5"}})");
  const std::vector<ViewedRun> runs = all();
  ASSERT_EQ(names(runs), (Names{"trial-0001", "trial-0002", "trial-0003", "trial-0004"}));
  EXPECT_EQ(std::tuple(runs[0].state(), runs[1].state() + ": " + runs[1].record.reason, runs[2].state()),
            std::tuple("done", "failed: train.lr is 0", "damaged"));
  expect_parts(runs[3].state() + ": " + runs[3].record.reason, {"damaged", "its directory is gone"});
  EXPECT_EQ(differing_keys({&runs[0], &runs[3]}, false), Names{"train.lr"}) << "its sweep gave it another";
  EXPECT_EQ(find_runs({directory_ / "sweep/trial-0002"}).size(), 1U);
  expect_parts(to_text(runs, 120), {"trial-0002", "failed: train.lr is 0"});
  EXPECT_EQ(to_text({runs[0], runs[1]}, 120).find("data: "), std::string::npos) << "one table has both";
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

}  // namespace lockstep::test::compare_test
