// Importance and partial dependence, and parts of the training samples that are held back, through the real
// executable.
#include "support/trainer_runs.h"

namespace lockstep::test::importance_runs_test {
namespace {

// A table whose label follows from `colour` and `size`, not from `noise`; groups and days beside them.
class ImportanceRuns : public TrainerRuns {
 protected:
  ImportanceRuns() {
    std::string text = "colour,size,noise,shop,day,y\n";
    for (Index i = 0; i < 300; ++i) {
      const bool red = i * 7 % 3 == 0;
      const Index size = i * 37 % 101;
      text += fmt::format("{},{},{},s{},2024-{:02}-{:02},{}\n", red ? "red" : "blue", size, i * 53 % 89,
                          i % 20, i % 12 + 1, i % 28 + 1, (size > 50) != red ? "yes" : "no");
    }
    write("table.csv", text);
  }
  ProcessResult train(const std::string& run, const std::string& flags, int ranks = 1,
                      const std::string& last = "dense(2)") const {
    return TrainerRuns::train(
        ranks, run,
        fmt::format("--data.train {} --data.label y --model.layers 'dense(16) relu {}' "
                    "--train.optimizer adam --train.lr 0.02 --train.epochs 30 --train.global_batch 16 "
                    "--train.replicas 4 --distribute.reduction ordered {}",
                    path("table.csv"), last, flags));
  }
  ProcessResult ask(const std::string& flags, int ranks = 1) const {
    return run_trainer(ranks, fmt::format("importance --model {} {}", directory_ / "run", flags));
  }
};

TEST_F(ImportanceRuns, ShowsTheColumnsThatTheModelNeeds) {
  succeeded(train(
      "run", "--data.validation 'stratified(0.3)' --data.ignore shop,day --train.calibrate temperature"));
  const std::string json = directory_ / "i.json";
  const ProcessResult found =
      succeeded(ask(fmt::format("--metric accuracy --json {} --csv {}", json, directory_ / "i.csv")));
  expect_parts(found.output, {"validation: 90 samples, accuracy", "falls when its values are shuffled"});
  const auto parsed = parse_json<nlohmann::json>(read_file(json));
  ASSERT_EQ(parsed["columns"].size(), 3U);
  EXPECT_EQ(parsed["columns"][2]["column"], "noise") << "the least important";
  EXPECT_GT(parsed["columns"][1]["importance"].get<double>(), 0.2)
      << "all features of a column move together";
  EXPECT_EQ(parsed["columns"][0]["repeats"].size(), 5U);
  EXPECT_TRUE(read_file(directory_ / "i.csv").starts_with("column,importance,deviation,repeat_1,"));
  const ProcessResult three = ask("--metric accuracy --csv -", 3);
  EXPECT_EQ(three.output, read_file(directory_ / "i.csv")) << "the same bits on any number of ranks";
  EXPECT_NE(ask("--metric accuracy --csv - --run.seed 2").output, three.output);

  const auto calibration = summary_of("run")["calibration"];
  ASSERT_GT(std::abs(calibration["temperature"].get<double>() - 1), 0.01);
  succeeded(ask(fmt::format("--metric log_loss --json {} --overwrite", json)));
  const auto by_log_loss = parse_json<nlohmann::json>(read_file(json));
  EXPECT_NEAR(by_log_loss["baseline"].get<double>(), calibration["log_loss"].get<double>(), 1e-9)
      << "with the temperature of the model";
  EXPECT_TRUE(by_log_loss["smaller_is_better"]);
  EXPECT_EQ(by_log_loss["samples"], 90);

  const ProcessResult size = succeeded(ask("--partial size --points 3 --csv -", 2));
  EXPECT_TRUE(size.output.starts_with("size,probability of no,probability of yes\n0,")) << size.output;
  EXPECT_EQ(ask("--partial size --points 3 --csv -").output, size.output);
  const ProcessResult colour = ask("--partial colour");
  expect_parts(colour.output, {"colour  probability of no  probability of yes", "red", "blue"});

  // The mean over one record, at its own value, is its prediction.
  write_file_atomically(directory_ / "one.csv", "colour,size,noise,shop,day,y\nred,43,5,s1,2024-01-01,yes\n");
  const ProcessResult mean =
      ask(fmt::format("--data.test {} --partial size --csv -", directory_ / "one.csv"));
  succeed(fmt::format("predict --model {} --input {} --output {}", directory_ / "run", directory_ / "one.csv",
                      directory_ / "one_prediction.csv"));
  const std::string prediction = read_file(directory_ / "one_prediction.csv");
  const std::string probability = prediction.substr(prediction.rfind(','));
  EXPECT_NEAR(std::stod(mean.output.substr(mean.output.rfind(',') + 1)), std::stod(probability.substr(1)),
              1e-6)
      << mean.output << prediction;
}

TEST_F(ImportanceRuns, WhatCannotBeAskedIsRefused) {
  succeeded(train("run", "--data.ignore shop,day --train.epochs 1 --train.loss binary_cross_entropy", 1,
                  "dense(1)"));
  const auto refused = [&](const std::string& flags, int exit_code, const std::vector<std::string>& parts) {
    expect_failed(ask(flags, 2), exit_code, parts);
  };
  refused("", kExitConfig, {"no validation and no test set", "--data.test FILE"});
  const std::string test = "--data.test " + (directory_ / "table.csv");
  EXPECT_TRUE(ask(test + " --partial size --csv -").output.starts_with("size,probability of yes\n"));
  refused(test + " --partial sise", kExitConfig, {"no column 'sise'", "did you mean 'size'"});
  refused(test + " --metric aucc", kExitConfig, {"'aucc'"});
  refused(test + " --metric r2", kExitConfig, {"'r2' is not defined"});
  refused(test + " --data.validation " + (directory_ / "table.csv"), kExitConfig, {"both given"});
  refused(test + " --csv " + (directory_ / "run/config.toml"), kExitConfig, {"--csv"});
}

TEST_F(ImportanceRuns, ImagesHaveNoColumns) {
  write_file_atomically(directory_ / "empty.toml", "");
  std::string records;
  for (int i = 0; i < 20; ++i)
    records += std::string(1, static_cast<char>(i % 2)) + std::string(4, static_cast<char>(i));
  write_file_atomically(directory_ / "images.bin", records);
  succeed(fmt::format(
      "--config {} --data.format raw --data.raw_layout 'label:u8 features:u8[2,2]' --data.train {} "
      "--model.layers 'flatten dense(2)' --train.lr 0.1 --train.epochs 1 --train.global_batch 4 --run.dir {}",
      directory_ / "empty.toml", directory_ / "images.bin", directory_ / "run"));
  expect_failed(ask("--data.test " + (directory_ / "images.bin")), kExitConfig,
                {"importance permutes columns", "pixel"});
}

TEST_F(ImportanceRuns, AHeldPartIsTheSameOnAnyNumberOfRanksAndLeavesItsGroupsOut) {
  for (const char* part : {"stratified(0.2)", "time(day, 0.2)", "group(shop, 0.2)"}) {
    const std::string flags = fmt::format("--data.validation '{}' --data.audit true --train.epochs 2", part);
    std::filesystem::remove_all(directory_ / "one");
    std::filesystem::remove_all(directory_ / "three");
    const ProcessResult one = succeeded(train("one", flags));
    expect_parts(one.output, {fmt::format("validation set, {}: ", part)});
    succeeded(train("three", flags, 3));
    EXPECT_TRUE(model("one") == model("three")) << part;
    const bool uses_shop = one.output.find("shop: ") != std::string::npos;
    EXPECT_EQ(uses_shop, part != std::string("group(shop, 0.2)"))
        << "who the customer is says nothing of a new one";
    expect_parts(run_trainer(fmt::format("eval --model {}", directory_ / "one")).output, {"validation: "});
  }
  const ProcessResult planned =
      run_trainer(fmt::format("plan --config {} --data.validation 'group(shop, 0.2)' --data.train {}",
                              directory_ / "one/config.toml", directory_ / "table.csv"));
  expect_parts(planned.output, {"all of 4 of the 20 groups of column 'shop'"});
}

TEST_F(ImportanceRuns, APartIsNoFileAndStaysOnResume) {
  const auto refused = [&](const std::string& flags, const std::vector<std::string>& parts) {
    expect_parts(ended_with(train("refused", flags, 2), kExitConfig).errors, parts);
  };
  refused("--data.validation 'stratified(2)'", {"stratified(2)", "above 0 and below 1"});
  refused("--data.validation 'group(shops, 0.2)'", {"no column 'shops'", "did you mean 'shop'"});
  refused("--data.validation 'stratified(0.2)' --data.validation_share 0.2", {"there is one validation set"});
  refused("--data.validation 'stratified(0.001)'",
          {"data.validation = 'stratified(0.001)' leaves 300 of the 300 records"});
  succeeded(train("run", "--data.validation 'stratified(0.2)' --train.epochs 1"));
  expect_failed(train("run", "--data.validation 'time(day, 0.2)' --train.epochs 2"), kExitConfig,
                {"another experiment", "data.validation was stratified(0.2), is time(day, 0.2)"});
}

}  // namespace
}  // namespace lockstep::test::importance_runs_test
