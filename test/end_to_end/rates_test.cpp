// Learning rates that follow the validation set, and those of single tensors, as a user sets them.
#include <cstring>

#include "support/trainer_runs.h"

namespace lockstep::test::rates_test {
namespace {

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
}  // namespace lockstep::test::rates_test
