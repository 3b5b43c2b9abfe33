// The model that one keeps: that of the best evaluation, with the same bits on any number of ranks and after
// a stop. Learning rates that follow the validation set, and those of single tensors.
#include "support/trainer_runs.h"

namespace lockstep::test::kept_model_test {
namespace {

// A model that learns its few samples by heart.
class KeptModel : public TrainerRuns {
 protected:
  KeptModel()
      : TrainerRuns(
            "[data]\nformat = \"synthetic\"\nsynthetic_rows = 120\nsynthetic_validation_rows = 150\n"
            "synthetic_test_rows = 90\nsynthetic_noise = 3\n"
            "[model]\nlayers = \"dense(32) batch_norm relu dense(2)\"\nbatch_norm = \"sync\"\n"
            "[train]\nepochs = 40\nglobal_batch = 20\nreplicas = 4\nlr = 0.2\n"
            "[distribute]\nreduction = \"ordered\"\n") {}
};

constexpr const char* kEarly =
    "--train.early_stopping '4 evaluations' --train.early_stopping_metric auc --checkpoint.every '1 epoch' ";

TEST_F(KeptModel, IsTheBestOnAnyNumberOfRanksAndAfterAStop) {
  const ProcessResult whole = succeeded(train(1, "whole", kEarly));
  expect_parts(whole.output, {"The run ends early after 4 evaluations without a better auc",
                              "stopped early after step", "kept: the weights of step", "best auc"});
  const nlohmann::json result = summary_of("whole");
  EXPECT_LT(result["steps"], 240) << "it never ended early";
  EXPECT_EQ(result["kept"]["weights"], "best");
  EXPECT_EQ(result["kept"]["measure"], "auc");
  const int best = result["kept"]["step"];
  EXPECT_EQ(result["evaluation"]["step"], best) << "of the test set";
  EXPECT_EQ(best + 4 * 6, result["steps"]);
  // Both have the same tensors; the model of the run has one fact more, which class is yes.
  const std::string saved =
      read_file(path("whole") + fmt::format("/checkpoints/step-{:09}/model.safetensors", best));
  const auto tensors = [](const std::string& file) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof(header));
    return file.substr(sizeof(header) + header);
  };
  EXPECT_EQ(tensors(saved), tensors(model("whole")));

  succeeded(train(2, "two", kEarly));
  EXPECT_TRUE(model("two") == model("whole"));
  EXPECT_EQ(summary_of("two")["kept"], result["kept"]);

  // A rank fails after the best evaluation; three ranks go on.
  const std::string failing = fmt::format("--debug.fail_rank 1 --debug.fail_step {}", best + 15);
  EXPECT_NE(train(2, "failed", kEarly + failing).exit_code, 0);
  expect_parts(succeeded(train(3, "failed", kEarly)).output, {"goes on from", "stopped early"});
  EXPECT_TRUE(model("failed") == model("whole"));
  EXPECT_EQ(summary_of("failed")["kept"], result["kept"]);
  EXPECT_EQ(summary_of("failed")["steps"], result["steps"]);

  // It is complete, though it has not made all steps, unless it may go on for longer.
  expect_parts(train(2, "whole", kEarly).output, {"is complete"});
  const std::string longer = kEarly + std::string("--train.early_stopping '6 evaluations' ");
  expect_parts(train(2, "whole", longer).errors, {"train.early_stopping was 4 evaluations"});
  succeeded(train(2, "whole", longer + "--run.resume_allow train.early_stopping"));
  succeeded(train(1, "longer", longer));
  EXPECT_EQ(summary_of("whole")["steps"], summary_of("longer")["steps"]);
  EXPECT_GT(summary_of("whole")["steps"], result["steps"]);
  EXPECT_TRUE(model("whole") == model("longer"));
}

TEST_F(KeptModel, HasItsOtherWeightsBesideIt) {
  succeeded(train(2, "run", "--train.epochs 8"));
  succeeded(train(2, "last", "--train.epochs 8 --train.keep last"));
  EXPECT_EQ(summary_of("last")["kept"]["weights"], "last");
  EXPECT_FALSE(model("run") == model("last")) << "the best are the last ones";
  const auto evaluated = [&](const std::string& of) { return evaluate(1, "--model " + path(of)); };
  const nlohmann::json best = evaluated("run");
  const nlohmann::json last = evaluated("last");
  EXPECT_EQ(evaluated("run@best"), best);
  EXPECT_EQ(evaluated("run@last"), last);
  EXPECT_EQ(evaluated("run@step-48"), last);
  EXPECT_NE(last, best);
  expect_failed(run_trainer(1, fmt::format("eval --model {}", path("run@first"))), kExitConfig,
                {"run@first", "no checkpoint 'first'", "those that it has: best, last, step-"});
  expect_failed(run_trainer(1, fmt::format("export --format npz --output x --model {}", path("no@best"))),
                kExitConfig, {"there is none in", "no/checkpoints"});
  // A file where the directory was.
  std::filesystem::remove_all(path("run") + "/checkpoints");
  write_file_atomically(path("run") + "/checkpoints", "");
  for (const char* command : {"eval", "export --format npz --output x"}) {
    expect_failed(run_trainer(1, fmt::format("{} --model {}", command, path("run@best"))), kExitData,
                  {"error: cannot read", "run/checkpoints"});
  }
}

// The average is what is evaluated, saved and predicted with, whoever averages.
TEST_F(KeptModel, IsAnAverageThatOutlivesAStop) {
  for (const std::string flags : {"--train.ema 0.9 --eval.every '9 steps' --train.epochs 6 "
                                  "--checkpoint.every '5 steps' --checkpoint.wait true ",
                                  "--train.swa_from '2 epochs' --train.keep last --train.epochs 6 "
                                  "--checkpoint.every '5 steps' --checkpoint.wait true "}) {
    SCOPED_TRACE(flags);
    const std::string name = flags.substr(8, 3);
    expect_parts(succeeded(train(1, name, flags)).output,
                 {"Evaluated and kept is the weights'", "kept: the weights' ", "train." + name});
    const nlohmann::json result = summary_of(name);
    EXPECT_TRUE(result["kept"]["average"].get<std::string>().find("train." + name) != std::string::npos);

    EXPECT_NE(train(2, name + "-killed", flags + "--debug.fail_rank 1 --debug.fail_step 22").exit_code, 0);
    expect_parts(succeeded(train(3, name + "-killed", flags + "--distribute.strategy zero1")).output,
                 {"goes on from"});
    EXPECT_TRUE(model(name + "-killed") == model(name));

    // The test set again, with the model that was saved.
    const nlohmann::json evaluated = evaluate(1, "--model " + path(name));
    EXPECT_NEAR(evaluated["test"]["loss"].get<double>(), result["evaluation"]["loss"].get<double>(), 1e-5);
  }
}

// The temperature is fitted after training, and kept with the weights.
TEST_F(KeptModel, IsCalibratedAlikeOnAnyRanksAndAfterAStop) {
  const std::string flags = "--train.calibrate temperature --train.epochs 12 --checkpoint.every '5 steps' ";
  const ProcessResult whole = succeeded(train(1, "whole", flags));
  expect_parts(whole.output, {"calibrated: temperature"});
  const nlohmann::json result = summary_of("whole");
  const nlohmann::json& calibration = result["calibration"];
  EXPECT_GT(calibration["temperature"], 1.01) << "a model that knows its few samples by heart is too sure";
  EXPECT_LT(calibration["log_loss"], calibration["log_loss_before"]);

  EXPECT_NE(train(2, "failed", flags + "--debug.fail_rank 1 --debug.fail_step 62").exit_code, 0);
  succeeded(train(3, "failed", flags));
  EXPECT_TRUE(model("failed") == model("whole"));
  EXPECT_EQ(summary_of("failed")["calibration"], calibration);

  const std::string json = path("eval.json");
  const auto evaluate_to_file = [&](const std::string& of) {
    return succeed(2, fmt::format("eval --model {} --json {} --overwrite", path(of), json)).output;
  };
  expect_no_parts(evaluate_to_file("whole"), {"no temperature"});
  nlohmann::json again = parse_json<nlohmann::json>(read_file(json));
  EXPECT_EQ(again["test"]["loss"], result["evaluation"]["loss"]);
  EXPECT_EQ(again["test"]["per_class"], result["evaluation"]["per_class"]);
  EXPECT_EQ(again["test"]["reliability"], result["evaluation"]["reliability"]);
  EXPECT_NEAR(again["validation"]["log_loss"].get<double>(), calibration["log_loss"].get<double>(), 1e-9);
  expect_parts(evaluate_to_file("whole@best"),
               {"has no temperature, so its probabilities are not calibrated"});
  again = parse_json<nlohmann::json>(read_file(json));
  EXPECT_NEAR(again["validation"]["log_loss"].get<double>(), calibration["log_loss_before"].get<double>(),
              1e-9);
  expect_failed(run_trainer(1, fmt::format("eval --model {} --json {}", path("whole"), json)), kExitConfig,
                {"eval.json", "--overwrite"});
}

TEST_F(KeptModel, IsNotCalibratedWithoutAValidationSetOrProbabilities) {
  const std::string flags = "--train.calibrate temperature ";
  expect_failed(train(1, "nothing", flags + "--data.synthetic_validation_rows 0"), kExitConfig,
                {"refused: train.calibrate without a validation set", "share(0.1)"});
  expect_failed(train(1, "scores", flags + "--train.loss multiclass_hinge"), kExitConfig,
                {"refused: train.calibrate with a loss that gives no probabilities",
                 "train.loss = \"softmax_cross_entropy\""});
}

TEST_F(KeptModel, IsOneAverageAtATime) {
  expect_failed(train(1, "both", "--train.ema 0.9 --train.swa_from '2 epochs'"), kExitConfig,
                {"refused: train.ema with train.swa_from", "remove train.swa_from"});
  expect_failed(train(1, "late", "--train.swa_from '40 epochs'"), kExitConfig,
                {"train.swa_from is '40 epochs'", "over by then", "an earlier time"});
  expect_failed(train(1, "old", "--eval.every_epochs 2"), kExitConfig,
                {"eval.every_epochs", "Lockstep calls it eval.every", "\"500 steps\""});
  expect_failed(train(1, "clock", "--eval.every '2 minutes'"), kExitConfig,
                {"eval.every is '2 minutes'", "by the clock"});
}

TEST_F(KeptModel, NeedsAValidationSet) {
  for (const char* flag :
       {"--train.early_stopping '2 epochs'", "--train.keep best", "--train.early_stopping_metric auc"}) {
    expect_failed(train(1, "none", fmt::format("--data.synthetic_validation_rows 0 {}", flag)), kExitConfig,
                  {"has no effect without a validation set", "share(0.1)"});
  }
  const ProcessResult unseen = succeeded(
      train(1, "unseen", "--data.synthetic_validation_rows 0 --data.synthetic_test_rows 0 --train.epochs 1"));
  expect_parts(unseen.errors + unseen.output, {"data.validation = \"share(0.1)\"", "hold some back"});
}

class Rates : public TrainerRuns {
 protected:
  Rates()
      : TrainerRuns(
            "[data]\nformat = \"synthetic\"\nsynthetic_rows = 120\nsynthetic_validation_rows = 150\n"
            "synthetic_test_rows = 90\nsynthetic_noise = 3\n"
            "[model]\nlayers = \"dense(16) layer_norm relu dense(2)\"\n"
            "[train]\nepochs = 16\nglobal_batch = 20\nreplicas = 4\nlr = 0.2\n[run]\nlog_every = 6\n"
            "[distribute]\nreduction = \"ordered\"\n") {}

  // The learning rate of each line of training in metrics.jsonl.
  std::vector<double> lrs(const std::string& run) const {
    std::vector<double> found;
    for (const nlohmann::json& line : metric_lines(path(run) + "/metrics.jsonl")) {
      if (line.contains("lr")) found.push_back(line["lr"]);
    }
    return found;
  }
};

constexpr const char* kPlateau =
    "--train.schedule plateau --train.plateau_patience '2 evaluations' --train.decay_factor 0.5 "
    "--train.end_lr 0.03 --train.keep last --checkpoint.every '1 epoch' ";

TEST_F(Rates, FallOnAPlateauWithTheSameBitsOnAnyNumberOfRanksAndAfterAStop) {
  const ProcessResult whole = succeeded(train(1, "whole", std::string(kPlateau) + "--run.plan full"));
  expect_parts(
      whole.output,
      {"at most 0.2", "is multiplied by 0.5 after each 2 evaluations without a better loss",
       "the learning rate falls from 0.2 to 0.1 after step", "no better loss of the validation set"});
  const std::vector<double> expected = lrs("whole");
  ASSERT_EQ(expected.size(), 16U);
  EXPECT_EQ(expected.front(), 0.2);
  EXPECT_EQ(expected.back(), 0.03) << "it does not reach the lowest";

  succeeded(train(2, "two", kPlateau));
  EXPECT_TRUE(model("two") == model("whole"));
  EXPECT_EQ(lrs("two"), expected);

  EXPECT_NE(train(2, "failed", std::string(kPlateau) + "--debug.fail_rank 1 --debug.fail_step 57").exit_code,
            0);
  expect_parts(succeeded(train(3, "failed", kPlateau)).output, {"goes on from"});
  EXPECT_TRUE(model("failed") == model("whole"));
  EXPECT_EQ(lrs("failed"), expected);
}

TEST_F(Rates, OnAPlateauNeedAValidationSet) {
  expect_failed(
      train(2, "none", "--data.synthetic_validation_rows 0 --train.schedule plateau"), kExitConfig,
      {"refused: train.schedule plateau without a validation set", "set data.validation = \"share(0.1)\""});
}

TEST_F(Rates, OfAsynchronousWorkersFallOnAPlateauToo) {
  const ProcessResult result = succeeded(
      train(3, "workers",
            std::string(kPlateau) + "--distribute.strategy parameter_server --distribute.mode async "
                                    "--distribute.reduction native --train.replicas 2"));
  expect_parts(result.output, {"the learning rate falls from 0.2 to 0.1 after step"});
  EXPECT_LT(lrs("workers").back(), 0.2);
}

// The bytes of a tensor in a model file of this little model.
std::string tensor(const std::string& file, const std::string& name) {
  constexpr std::size_t kLength = 8;
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), kLength);
  const auto offsets = parse_json<nlohmann::json>(file.substr(kLength, header))[name]["data_offsets"];
  const std::size_t begin = offsets[0];
  const std::size_t end = offsets[1];
  return file.substr(kLength + header + begin, end - begin);
}

TEST_F(Rates, OfZeroFreezeATensorOfTheGivenWeights) {
  const std::string wd = "--train.epochs 1 --train.weight_decay 0.1 --train.keep last ";
  succeeded(train(1, "start", wd));
  const ProcessResult tuned = succeeded(train(
      2, "tuned",
      wd + fmt::format("--init {}/model.safetensors --train.lr_multiplier '0.*: 0,norm: 2'", path("start"))));
  expect_parts(tuned.output, {"Frozen: 0.weight, 0.bias.", "Learning rate times 2: 1.weight, 1.bias."});
  for (const char* name : {"0.weight", "0.bias"})
    EXPECT_TRUE(tensor(model("tuned"), name) == tensor(model("start"), name)) << name;
  EXPECT_FALSE(tensor(model("tuned"), "3.weight") == tensor(model("start"), "3.weight"));
}

TEST_F(Rates, OfATensorThatIsNotThereAreRefusedOnce) {
  const ProcessResult unknown =
      ended_with(train(2, "unknown", "--train.lr_multiplier '4.*: 0.1'"), kExitConfig);
  expect_parts(unknown.errors,
               {"train.lr_multiplier: '4.*' fits no tensor of the model, which has 0.weight"});
  EXPECT_EQ(unknown.errors.find("fits no tensor"), unknown.errors.rfind("fits no tensor"));
}

}  // namespace
}  // namespace lockstep::test::kept_model_test
