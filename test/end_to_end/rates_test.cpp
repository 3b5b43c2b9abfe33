// Learning rates that follow the validation set, and those of single tensors, as a user sets them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test::rates_test {
namespace {

class Rates : public testing::Test {
 protected:
  ProcessResult train(int ranks, const std::string& run, const std::string& flags) const {
    write_file_atomically(path("run.toml"), R"toml([data]
format = "synthetic"
synthetic_rows = 120
synthetic_validation_rows = 150
synthetic_test_rows = 90
synthetic_noise = 3
[model]
layers = "dense(16) layer_norm relu dense(2)"
[train]
epochs = 16
global_batch = 20
replicas = 4
lr = 0.2
[run]
log_every = 6
[distribute]
reduction = "ordered"
)toml");
    return run_trainer(ranks, fmt::format("--config {} --run.progress plain --run.dir {} {}",
                                          path("run.toml"), path(run), flags));
  }
  std::string path(const std::string& name) const { return directory_ / name; }
  std::string model(const std::string& run) const { return read_file(path(run) + "/model.safetensors"); }
  // The learning rate of each line of training in metrics.jsonl.
  std::vector<double> lrs(const std::string& run) const {
    std::istringstream lines(read_file(path(run) + "/metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = parse_json<nlohmann::json>(line);
      if (json.contains("lr")) found.push_back(json["lr"]);
    }
    return found;
  }

  TemporaryDirectory directory_;
};

constexpr const char* kPlateau =
    "--train.schedule plateau --train.plateau_patience '2 evaluations' --train.decay_factor 0.5 "
    "--train.end_lr 0.03 --train.keep last --checkpoint.every '1 epoch' ";

TEST_F(Rates, FallOnAPlateauWithTheSameBitsOnAnyNumberOfRanksAndAfterAStop) {
  const ProcessResult whole = train(1, "whole", std::string(kPlateau) + "--run.plan full");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  expect_parts(
      whole.output,
      {"at most 0.2", "is multiplied by 0.5 after each 2 evaluations without a better loss",
       "the learning rate falls from 0.2 to 0.1 after step", "no better loss of the validation set"});
  const std::vector<double> expected = lrs("whole");
  ASSERT_EQ(expected.size(), 16U);
  EXPECT_EQ(expected.front(), 0.2);
  EXPECT_EQ(expected.back(), 0.03) << "it does not reach the lowest";

  ASSERT_EQ(train(2, "two", kPlateau).exit_code, 0);
  EXPECT_TRUE(model("two") == model("whole"));
  EXPECT_EQ(lrs("two"), expected);

  EXPECT_NE(train(2, "failed", std::string(kPlateau) + "--debug.fail_rank 1 --debug.fail_step 57").exit_code,
            0);
  const ProcessResult rest = train(3, "failed", kPlateau);
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  expect_parts(rest.output, {"goes on from"});
  EXPECT_TRUE(model("failed") == model("whole"));
  EXPECT_EQ(lrs("failed"), expected);
}

TEST_F(Rates, OnAPlateauNeedAValidationSet) {
  const ProcessResult none = train(2, "none", "--data.synthetic_validation_rows 0 --train.schedule plateau");
  EXPECT_EQ(none.exit_code, kExitConfig);
  expect_parts(none.errors, {"refused: train.schedule plateau without a validation set",
                             "set data.validation = \"share(0.1)\""});
}

TEST_F(Rates, OfAsynchronousWorkersFallOnAPlateauToo) {
  const ProcessResult result = train(3, "workers",
                                     std::string(kPlateau) +
                                         "--distribute.strategy parameter_server --distribute.mode async "
                                         "--distribute.reduction native --train.replicas 2");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
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
  ASSERT_EQ(train(1, "start", wd).exit_code, 0);
  const ProcessResult tuned = train(
      2, "tuned",
      wd + fmt::format("--init {}/model.safetensors --train.lr_multiplier '0.*: 0,norm: 2'", path("start")));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.errors;
  expect_parts(tuned.output, {"Frozen: 0.weight, 0.bias.", "Learning rate times 2: 1.weight, 1.bias."});
  for (const char* name : {"0.weight", "0.bias"}) {
    EXPECT_TRUE(tensor(model("tuned"), name) == tensor(model("start"), name)) << name;
  }
  EXPECT_FALSE(tensor(model("tuned"), "3.weight") == tensor(model("start"), "3.weight"));
}

TEST_F(Rates, OfATensorThatIsNotThereAreRefusedOnce) {
  const ProcessResult unknown = train(2, "unknown", "--train.lr_multiplier '4.*: 0.1'");
  EXPECT_EQ(unknown.exit_code, kExitConfig);
  expect_parts(unknown.errors,
               {"train.lr_multiplier: '4.*' fits no tensor of the model, which has 0.weight"});
  EXPECT_EQ(unknown.errors.find("fits no tensor"), unknown.errors.rfind("fits no tensor"));
}

}  // namespace
}  // namespace lockstep::test::rates_test
