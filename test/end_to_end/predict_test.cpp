// Predictions through the real executable: names, kept columns, standard input, and the threshold that a run
// has chosen.
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
                              "validation_share = 0.3\n"
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
    expect_parts(result.errors, {"far-1.csv': numbers lie far outside of those that the model learnt from",
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
  refused("--eval.threshold f1 --data.validation_share 0", {"share(0.1)", "eval.threshold = 0.3"});
  refused("--eval.threshold f1 --train.loss binary_hinge", {"hinge", "margins"});
  refused("--eval.threshold 0.2 --model.layers 'dense(3)' --train.loss softmax_cross_entropy",
          {"does not say one yes or no"});
  refused("--eval.threshold f2", {"eval.threshold", "found 'f2'"});
}

}  // namespace
}  // namespace lockstep::test::predict_test
