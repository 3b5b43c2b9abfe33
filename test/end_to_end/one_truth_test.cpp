// One truth about a run: whoever shows a figure of it shows that of the weights that it keeps, as `trainer
// eval` computes it again, and what belongs to the last weights is called so.
#include "lockstep/base/text.h"
#include "support/trainer_runs.h"

namespace lockstep::test::one_truth_test {
namespace {

using Json = nlohmann::json;

class OneTruth : public TrainerRuns {
 protected:
  OneTruth() {
    write_table("train.csv", 240, 1);
    write_table("test.csv", 90, 2);
  }

  // Two features say something of the label, five say nothing: a model of some size soon learns them by
  // heart.
  void write_table(const std::string& name, int rows, unsigned seed) const {
    std::mt19937 dice(seed);
    std::normal_distribution<double> normal;
    std::ofstream out(directory_ / name);
    out << "a,b,c,d,e,f,g,label\n";
    for (int row = 0; row < rows; ++row) {
      std::vector<double> x(7);
      for (double& value : x) value = normal(dice);
      for (const double value : x) out << fmt::format("{:.4f},", value);
      out << (x[0] + x[1] + normal(dice) > 0 ? "yes" : "no") << '\n';
    }
  }

  std::string flags(const std::string& more) const {
    return fmt::format(
        "--config {} --data.train {} --data.label label --model.layers 'dense(32) relu dense(1)' "
        "--train.loss binary_cross_entropy --train.optimizer adam --train.lr 0.02 --train.epochs 12 "
        "--train.global_batch 24 --train.replicas 2 --distribute.reduction ordered --run.log_every 7 "
        "--eval.metrics auc,ece,recall {}",
        path("run.toml"), path("train.csv"), more);
  }
  std::string test_flags() const { return "--data.test " + (directory_ / "test.csv"); }

  ProcessResult train(const std::string& more, int ranks = 1) const {
    return run_trainer(ranks, flags(more) + " --run.dir " + run_);
  }

  Json file(const std::string& name) const { return Json::parse(read_file(run_ + "/" + name)); }
  std::vector<Json> lines(const std::string& kind, const std::string& split) const {
    std::vector<Json> found;
    for (const Json& line : metric_lines(run_ + "/metrics.jsonl", kind)) {
      if (line.value("split", "") == split) found.push_back(line);
    }
    return found;
  }

  void expect_one_truth(const std::string& measure = "loss") const;
  void expect_viewers_of_the_kept(const Json& truth, const std::string& measure) const;
  void expect_viewers_of_the_last(const std::string& measure) const;
  void expect_predictions(const Json& truth) const;

  const std::string run_ = directory_ / "run";
};

const std::vector<std::string> kMeasures{"loss", "accuracy", "auc", "ece", "recall"};

// What `shown` has of a set is what eval computes.
void expect_same(const Json& shown, const Json& truth, const std::string& who) {
  for (const std::string& name : kMeasures) {
    ASSERT_TRUE(shown.contains(name)) << who << ": " << name;
    EXPECT_NEAR(shown[name].get<double>(), truth[name].get<double>(), 1e-12) << who << ": " << name;
  }
}

void OneTruth::expect_viewers_of_the_kept(const Json& truth, const std::string& measure) const {
  const std::string main = truth.contains("test") ? "test" : "validation";
  const Json compared = json_of(run_trainer("compare " + run_ + " --json -"))[0];
  const Json results = json_of(run_trainer("report " + run_ + " --json -"))["runs"][0]["results"];
  for (const auto& [split, figures] : truth.items()) {
    expect_same(file("run.json")["figures"][split]["values"], figures, "run.json");
    expect_same(compared["figures"][split], figures, "compare");
    const auto of_set =
        std::find_if(results.begin(), results.end(), [&](const Json& each) { return each["name"] == split; });
    ASSERT_NE(of_set, results.end()) << split;
    EXPECT_EQ((*of_set)["values"][0][0], "loss");
    EXPECT_NEAR((*of_set)["values"][0][1].get<double>(), figures["loss"].get<double>(), 1e-12) << "the page";
  }
  expect_same(file("summary.json")["evaluation"], truth[main], "summary.json");
  EXPECT_EQ(file("summary.json")["evaluation"]["step"], file("summary.json")["kept"]["step"]);
  const std::string quality =
      fmt::format("loss {:.5g}, accuracy {:.5g}, auc {:.5g}", truth[main]["loss"].get<double>(),
                  truth[main]["accuracy"].get<double>(), truth[main]["auc"].get<double>());
  const std::string log = read_file(run_ + "/log.txt");
  const std::string head = "done: " + main + " ";
  ASSERT_EQ(count_of(log, head), 1);
  const std::size_t begin = log.find(head);
  const std::string done = log.substr(begin, log.find('\n', begin) - begin);
  const bool has_threshold = file("summary.json").contains("threshold");
  EXPECT_EQ(count_of(done, (has_threshold ? "; at 0.5: " : head) + quality), 1) << done;
  const std::string table = run_trainer("compare " + run_ + " --all").output;
  for (const char* name : {"loss", "auc"}) {
    const std::string cell = fmt::format(" {:.5g} ", truth[main][name].get<double>());
    EXPECT_NE(table.find(cell), std::string::npos) << name << "\n" << table;
  }
  const Json status = json_of(run_trainer("status " + run_ + " --json -"))[0];
  EXPECT_NEAR(status["value"].get<double>(), truth["validation"][measure].get<double>(), 1e-12);
  const std::string shown = fmt::format("validation {} {}", measure, short_number(status["value"]));
  expect_parts(run_trainer("status " + run_).output, {shown});
  const Json importance = json_of(run_trainer("importance --model " + run_ + " --repeats 1 --json -"));
  EXPECT_NEAR(
      importance["baseline"].get<double>(),
      truth[importance["set"].get<std::string>()][importance["measure"].get<std::string>()].get<double>(),
      1e-12);
}

// Where the weights were chosen, which value chose them, and how the last ones did.
void OneTruth::expect_viewers_of_the_last(const std::string& measure) const {
  const Json summary = file("summary.json");
  const std::vector<Json> evaluations = lines("evaluation", "validation");
  ASSERT_FALSE(evaluations.empty());
  const double last = evaluations.back()[measure];
  const bool best = summary["kept"]["weights"] == "best";
  const double decided = best ? summary["kept"]["value"].get<double>() : last;
  const Json status = json_of(run_trainer("status " + run_ + " --json -"))[0];
  EXPECT_EQ(status["last"].get<double>(), last);
  EXPECT_EQ(status["best"].get<double>(), decided);
  EXPECT_EQ(status["best_step"], summary["kept"]["step"]);
  const Json compared = json_of(run_trainer("compare " + run_ + " --json -"))[0];
  EXPECT_EQ(compared["best"]["value"].get<double>(), decided);
  EXPECT_EQ(compared["best"]["measure"], measure);
  EXPECT_EQ(compared["last"]["validation"][measure].get<double>(), last);
  EXPECT_EQ(file("run.json")["deciding"]["validation"]["value"].get<double>(), decided);
  const bool other = best && summary["kept"]["step"] != summary["steps"];
  EXPECT_EQ(summary.contains("last_evaluation"), other);
  EXPECT_EQ(count_of(read_file(run_ + "/log.txt"), "; last: loss "), other ? 1 : 0);
  EXPECT_EQ(count_of(run_trainer("compare " + run_).output, " last"), other ? 1 : 0);
  EXPECT_EQ(count_of(run_trainer("status " + run_).output, "; last: "), other ? 1 : 0);
  if (other) {
    EXPECT_EQ(summary["last_evaluation"][measure].get<double>(), last);
  }
  // The curves have all evaluations, and that of the kept step is the one that decided.
  const std::string csv = run_trainer("export-metrics " + run_ + " --format csv --output -").output;
  EXPECT_EQ(count_of(csv, ",evaluation,validation,"), static_cast<int>(evaluations.size()));
  if (!best) return;
  const auto kept = std::ranges::find_if(
      evaluations, [&](const Json& line) { return line["step"] == summary["kept"]["step"]; });
  ASSERT_NE(kept, evaluations.end());
  EXPECT_EQ((*kept)[measure].get<double>(), decided);
}

// The share of the test set of which `predict` says the right class.
void OneTruth::expect_predictions(const Json& truth) const {
  if (!truth.contains("test")) return;
  const std::string output = directory_ / "predictions.csv";
  succeed(fmt::format("predict --model {} --input {} --output {} --overwrite --eval.threshold 0.5", run_,
                      directory_ / "test.csv", output));
  std::ifstream records(directory_ / "test.csv");
  std::ifstream predictions(output);
  std::string record;
  std::string prediction;
  const auto next = [&] { return std::getline(records, record) && std::getline(predictions, prediction); };
  ASSERT_TRUE(next()) << "the header";
  double right = 0;
  double rows = 0;
  for (; next(); ++rows) {
    const std::string label = record.substr(record.rfind(',') + 1);
    right += prediction.substr(prediction.find(',') + 1).starts_with(label + ",") ? 1 : 0;
  }
  EXPECT_NEAR(truth["test"]["accuracy"].get<double>(), right / rows, 1e-9);
}

void OneTruth::expect_one_truth(const std::string& measure) const {
  const Json truth = evaluate(1, "--model " + run_);
  expect_viewers_of_the_kept(truth, measure);
  expect_viewers_of_the_last(measure);
  expect_predictions(truth);
}

TEST_F(OneTruth, WithAValidationSetAlone) {
  succeeded(train("--data.validation 'share(0.25)'"));
  EXPECT_LT(file("summary.json")["kept"]["step"], file("summary.json")["steps"])
      << "the last weights are others";
  expect_one_truth();
}

TEST_F(OneTruth, WithATestSet) {
  succeeded(train("--data.validation 'share(0.25)' --train.early_stopping_metric auc " + test_flags()));
  expect_one_truth("auc");
}

TEST_F(OneTruth, WithATemperature) {
  const std::string calibrated = "--data.validation 'share(0.25)' --train.calibrate temperature ";
  succeeded(train(calibrated));
  expect_one_truth();
  std::filesystem::remove_all(run_);
  succeeded(train(calibrated + test_flags(), 2));
  expect_one_truth();
}

TEST_F(OneTruth, WithTheLastWeightsAThresholdAndAnAverage) {
  succeeded(train("--data.validation 'share(0.25)' --train.keep last --eval.threshold f1 " + test_flags()));
  expect_one_truth();
  std::filesystem::remove_all(run_);
  succeeded(train("--data.validation 'share(0.25)' --train.ema 0.9"));
  expect_one_truth();
}

TEST_F(OneTruth, WhereTheRunEndsEarly) {
  const std::string early = "--data.validation 'share(0.25)' --train.early_stopping '3 evaluations' ";
  for (const int ranks : {1, 2}) {
    succeeded(train(early, ranks));
    expect_one_truth();
    EXPECT_EQ(lines("train", "").back()["step"], file("summary.json")["steps"])
        << "a line for the last steps";
    if (ranks == 2) {
      EXPECT_EQ(lines("ranks", "").back()["step"], file("summary.json")["steps"]);
    }
    std::filesystem::remove_all(run_);
  }
}

// The start that ends the run has not evaluated the weights that it keeps.
TEST_F(OneTruth, NamesTheClassBesideWhatIsAboutIt) {
  const ProcessResult run = train(
      "--data.validation 'share(0.25)' --train.early_stopping '2 evaluations' --train.early_stopping_metric "
      "recall");
  expect_parts(run.output, {"no better recall of 'yes' of the validation set", "best recall of 'yes'"});
  EXPECT_EQ(file("run.json")["positive"], "yes");
  expect_parts(run_trainer("status " + run_).output, {"validation recall of 'yes' "});
  expect_parts(run_trainer("watch --once " + run_).output, {"validation recall of 'yes' "});
  const std::string other = run_ + "_no";
  succeed(flags("--data.validation 'share(0.25)' --data.positive no --run.dir " + other));
  expect_parts(run_trainer("compare " + run_).output, {"recall of", "'yes'"});
  // Of two classes the cells say it.
  expect_parts(run_trainer(fmt::format("compare {} {} --all", run_, other)).output,
               {" of 'yes'", " of 'no'"});
}

TEST_F(OneTruth, WhereTheBestWeightsAreOfAnEarlierStart) {
  const std::string validated = "--data.validation 'share(0.25)' --eval.every '8 steps' ";
  succeeded(train(validated));
  const Json whole = file("summary.json");
  const Json figures = file("run.json")["figures"]["validation"]["values"];
  const Index kept = whole["kept"]["step"];
  std::filesystem::remove_all(run_);
  ASSERT_NE(train(fmt::format("{} --checkpoint.every '1 steps' --checkpoint.wait true --debug.fail_rank 0 "
                              "--debug.fail_step {}",
                              validated, kept + 20))
                .exit_code,
            0);
  succeeded(train(validated + "--checkpoint.every '1 steps' --checkpoint.wait true"));
  EXPECT_EQ(file("run.json")["launch"]["resumed_at"].size(), 1U);
  EXPECT_GT(file("run.json")["launch"]["resumed_at"][0], kept);
  EXPECT_EQ(file("run.json")["figures"]["validation"]["values"], figures) << "the same bits";
  expect_one_truth();
}

TEST_F(OneTruth, InSweepsAndFolds) {
  const std::string more = "--train.calibrate temperature ";
  for (const std::string& command :
       {fmt::format("sweep {} --data.validation 'share(0.25)' --grid train.lr=0.01,0.05", flags(more)),
        fmt::format("cv {} --folds 2", flags(more))}) {
    succeed(fmt::format("{} --run.dir {}", command, run_));
    const Json trials = file("sweep.json")["trials"];
    ASSERT_EQ(trials.size(), 2U);
    for (const Json& trial : trials) {
      const std::string run = run_ + "/" + trial["run"].get<std::string>();
      const Json truth = evaluate(1, "--model " + run);
      expect_same(trial["validation"]["evaluation"], truth["validation"], command);
      EXPECT_NEAR(trial["validation"]["value"].get<double>(), truth["validation"]["loss"].get<double>(),
                  1e-12);
    }
    std::filesystem::remove_all(run_);
  }
}

}  // namespace
}  // namespace lockstep::test::one_truth_test
