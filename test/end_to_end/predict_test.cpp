// Predictions through the real executable: names, kept columns, standard input, and the threshold that a run
// has chosen; importance, partial dependence, and parts of the training samples that are held back.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::predict_test {
namespace {

class Predict : public TrainerRuns {
 protected:
  // One in five says "yes, please", where x is large.
  static std::string people(Index rows) {
    RandomStream random({.seed = 3, .purpose = Purpose::kSynthetic});
    std::string text = "id,x,answer\n";
    for (Index row = 0; row < rows; ++row) {
      const double x = double{random.normal()};
      text += fmt::format("{:05},{:.3f},{}\n", row, x,
                          x + double{random.normal()} > 1.2 ? "\"yes, please\"" : "\"\"\"no\"\"\"");
    }
    return text;
  }

  std::string train(int ranks, const std::string& run, const std::string& flags) const {
    return succeeded(TrainerRuns::train(ranks, run, flags)).output;
  }

  std::string predict_words(const std::string& flags) const {
    return fmt::format("predict --model {} --output - {}", directory_ / "run1", flags);
  }

  void expect_refused(const std::string& flags, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(flags);
    const ProcessResult refused =
        ended_with(run_trainer(predict_words("--input " + data_ + " " + flags)), kExitConfig);
    EXPECT_EQ(refused.output, "");
    expect_parts(refused.errors, parts);
  }

  std::string data_ = write("people.csv", people(600));
  std::string config_ = write(
      "run.toml", fmt::format("[data]\ntrain = \"{}\"\nlabel = \"answer\"\nignore = \"id\"\nchunk_kib = 1\n"
                              "validation = 'share(0.3)'\n"
                              "[model]\nlayers = \"dense(1)\"\n"
                              "[train]\nloss = \"binary_cross_entropy\"\noptimizer = \"adam\"\nlr = 0.05\n"
                              "epochs = 6\nglobal_batch = 48\nreplicas = 6\n"
                              "[distribute]\nreduction = \"ordered\"\n",
                              data_));
};

TEST_F(Predict, TheThresholdOfTheRunDecidesTheClassWithTheSameBytesOnAnyRanks) {
  for (const int ranks : {1, 3}) {
    expect_parts(train(ranks, fmt::format("run{}", ranks), "--eval.threshold f1"),
                 {"threshold: the model says yes (", "the f1 of 'yes, please' of the validation set"});
  }
  EXPECT_EQ(model("run1"), model("run3"));
  const auto summary = summary_of("run1");
  const double threshold = summary["threshold"]["probability"].get<double>();
  EXPECT_EQ(summary["threshold"]["measure"], "f1");
  EXPECT_GT(threshold, 0.1);
  EXPECT_LT(threshold, 0.48) << "yes is rare";

  const ProcessResult piped =
      succeeded(run_command(fmt::format("cat {} | {} {}", data_, trainer_path(),
                                        predict_words("--input - --keep id,answer --data.chunk_kib 1"))));
  EXPECT_EQ(run_command(fmt::format("cat {} | {} {}", data_, mpiexec_words(),
                                    rank_words(3, predict_words("--input - --keep id,answer"))))
                .output,
            piped.output);
  const std::vector<std::string> lines = lines_of(piped.output);
  ASSERT_EQ(lines.size(), 601U);
  EXPECT_EQ(lines[0], "row,id,answer,prediction,\"p_\"\"no\"\"\",\"p_yes, please\"");
  const std::string truth = people(600);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::string start = fmt::format("{},{:05},", i - 1, i - 1);
    ASSERT_EQ(line.substr(0, start.size()), start);
    const double yes = std::stod(line.substr(line.rfind(',') + 1));
    const bool said = line.find(",\"yes, please\",", start.size() + 1) != std::string::npos;
    EXPECT_EQ(said, yes >= threshold) << line;
  }
  // The weights of a checkpoint have none yet.
  const ProcessResult best =
      succeed(fmt::format("predict --model {}@best --input {} --output -", directory_ / "run1", data_));
  expect_parts(best.errors, {"has no threshold", "--eval.threshold 0.3"});
  expect_failed(run_trainer(predict_words("--eval.threshold youden --input " + data_)), kExitConfig,
                {"was chosen by \"f1\""});
  expect_parts(run_trainer(3, fmt::format("eval --model {}", directory_ / "run1")).output,
               {"validation: with yes ('yes, please') from a probability of ", "accuracy "});
}

TEST_F(Predict, WritesWhatIsAskedForAndRefusesWhatThereIsNot) {
  train(1, "run1", "");
  const auto output = [&](const std::string& flags) {
    const ProcessResult result = succeed(predict_words("--input " + data_ + " " + flags));
    return lines_of(result.output);
  };
  EXPECT_EQ(output("--proba")[0], "row,\"p_\"\"no\"\"\",\"p_yes, please\"");
  const auto first = parse_json<nlohmann::json>(output("--format jsonl --keep id --threshold 0")[1]);
  EXPECT_EQ(first["id"], "00001");
  EXPECT_EQ(first["prediction"], "yes, please");
  EXPECT_EQ(first.size(), 5U);
  const auto bytes = [&](const std::string& flags) {
    return run_trainer(predict_words("--input " + data_ + " --format npy " + flags)).output.size();
  };
  EXPECT_EQ(bytes(""), 128U + 600 * sizeof(float)) << "the outputs of the model";
  EXPECT_EQ(bytes("--proba"), 128U + 2 * 600 * sizeof(float)) << "a column for each class";

  expect_refused("--keep nobody", {"--keep", "'nobody'", "id, x, answer"});
  expect_refused("--keep id --format npy", {"--keep", "npy holds numbers only", "--format jsonl"});
  expect_refused("--threshold 0.3 --format npy", {"--threshold", "npy holds numbers only"});
  expect_refused("--threshold 2", {"--threshold", "from 0 to 1", "'2'"});
  expect_refused("--top 2", {"--top", "says yes or no"});
  expect_refused("--top 0", {"--top", "a whole number from 1"});
  expect_refused("--top 2 --proba", {"--proba", "--top", "one of them"});
  expect_refused("--threshold 0.3 --proba", {"--threshold", "--proba", "one of them"});
  expect_refused("--format xls", {"unknown format of predictions 'xls'", "jsonl"});
}

TEST_F(Predict, AnEmptyInputHasAnEmptyResult) {
  train(1, "run1", "");
  const auto result = [&](int ranks, const std::string& input, const std::string& flags = "") {
    SCOPED_TRACE(input);
    const ProcessResult found = succeed(ranks, predict_words("--input " + input + " " + flags));
    expect_parts(found.errors, {"predicted 0 rows"});
    return found.output;
  };
  const std::string header = "row,prediction,\"p_\"\"no\"\"\",\"p_yes, please\"\n";
  EXPECT_EQ(result(1, "-"), header);
  EXPECT_EQ(result(1, write("empty.csv", "")), header);
  EXPECT_EQ(result(2, write("blank.csv", "\n\n")), header);
  EXPECT_EQ(result(2, write("head.csv", "id,x\n")), header);
  EXPECT_EQ(result(1, directory_ / "head.csv", "--keep id"), "row,id," + header.substr(4));
  EXPECT_EQ(result(1, directory_ / "empty.csv", "--keep id"), "row,id," + header.substr(4));
  EXPECT_EQ(result(1, directory_ / "empty.csv", "--format jsonl"), "");
  EXPECT_EQ(result(1, directory_ / "empty.csv", "--format npy").size(), 128U);
  // Files without records among others.
  write("part-0.csv", "");
  write("part-1.csv", "id,x\n1,0.5\n");
  write("part-2.csv", "id,x\n");
  const ProcessResult parts =
      run_trainer(predict_words(fmt::format("--keep id --input '{}'", directory_ / "part-*.csv")));
  EXPECT_EQ(count_of(parts.output, "\n"), 2) << parts.output << parts.errors;
  expect_parts(parts.output, {"\n0,1,"});
  // There is nothing that could be measured.
  expect_failed(run_trainer(fmt::format("eval --model {} --data.test {}", directory_ / "run1",
                                        directory_ / "empty.csv")),
                kExitData, {"empty.csv' holds no records"});
}

TEST_F(Predict, ColumnsWithoutNamesAreTakenInOrderWhichIsSaid) {
  train(1, "run1", "");
  const std::string named = run_trainer(predict_words("--input " + write("b.csv", "x,id\n1.5,7\n"))).output;
  const auto said = [&](const std::string& text) {
    const ProcessResult result = run_trainer(predict_words("--input " + write("none.csv", text)));
    EXPECT_EQ(result.output, named);
    return result.errors;
  };
  expect_parts(said("7,1.5\n"), {"none.csv' has no header: its 2 columns are taken as id, x\n"});
  expect_parts(said("7,1.5,\"yes, please\"\n"), {"its 3 columns are taken as id, x, answer\n"});
  expect_failed(run_trainer(predict_words("--input " + write("none.csv", "1.5\n"))), kExitData,
                {"has 1 columns and no header, expected 3 (or 2 without labels)"});
}

TEST_F(Predict, NumbersFarOutsideOfTrainingsAreNamed) {
  train(1, "run1", "");
  write("far-0.csv", "id,x\n1,0.5\n2,1\n");
  write("far-1.csv", "id,x\n3,150\n4,0\n5,-2e3\n");
  for (const int ranks : {1, 2}) {
    const ProcessResult result =
        succeed(ranks, predict_words(fmt::format("--input '{}'", directory_ / "far-*.csv")));
    EXPECT_EQ(count_of(result.errors, "warning: "), 1) << result.errors;
    expect_parts(result.errors, {"far-1.csv': values lie far outside of those that the model learnt from",
                                 "'x' has -2000 to 150 in 2 records, in training -"});
  }
  expect_no_parts(run_trainer(predict_words("--input " + data_)).errors, {"warning"});
}

TEST_F(Predict, AThresholdThatCannotBeChosenIsRefused) {
  const auto refused = [&](const std::string& flags, const std::vector<std::string>& parts) {
    const ProcessResult result = ended_with(
        run_trainer(fmt::format("--config {} --run.dir {} {}", config_, directory_ / "none", flags)),
        kExitConfig);
    expect_parts(result.errors, parts);
  };
  refused("--eval.threshold f1 --data.validation ''", {"share(0.1)", "eval.threshold = 0.3"});
  refused("--eval.threshold f1 --train.loss binary_hinge", {"hinge", "margins"});
  refused("--eval.threshold 0.2 --model.layers 'dense(3)' --train.loss softmax_cross_entropy",
          {"does not say one yes or no"});
  refused("--eval.threshold f2", {"eval.threshold", "found 'f2'"});
}

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
  refused("--data.validation 'stratified(0.001)'",
          {"data.validation = 'stratified(0.001)' leaves 300 of the 300 records"});
  succeeded(train("run", "--data.validation 'stratified(0.2)' --train.epochs 1"));
  expect_failed(train("run", "--data.validation 'time(day, 0.2)' --train.epochs 2"), kExitConfig,
                {"another experiment", "data.validation was stratified(0.2), is time(day, 0.2)"});
}

}  // namespace
}  // namespace lockstep::test::predict_test
