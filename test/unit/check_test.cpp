// Rules over several options.
#include "lockstep/config/check.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

struct Entry {
  std::string name;
  std::vector<std::string> options;
};

Config valid_config() {
  Config config;
  config.train.epochs = 1;
  config.train.global_batch = 8;
  return config;
}

std::vector<Choice> choices(const std::string& optimizer, const std::string& loss = "huber") {
  static const std::vector<Entry> optimizers{{"sgd", {"train.momentum", "train.weight_decay"}},
                                             {"adam", {"train.beta1", "train.beta2", "train.weight_decay"}}};
  static const std::vector<Entry> losses{{"huber", {"train.huber_delta"}}, {"mean_squared_error", {}}};
  return {choice_in<Entry>(optimizers, "train.optimizer", optimizer),
          choice_in<Entry>(losses, "train.loss", loss)};
}

// With one model, one batch size and one length given, unless told otherwise.
std::string error_of(const Config& config, std::set<std::string> given = {},
                     const std::vector<Choice>& in_use = choices("sgd"),
                     const std::set<std::string>& alternatives = {"model.layers", "train.global_batch",
                                                                  "train.epochs"}) {
  given.insert(alternatives.begin(), alternatives.end());
  try {
    check_config(config, given, in_use);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CheckConfig, AcceptsAValidOne) {
  EXPECT_EQ(error_of(valid_config(), {"train.momentum", "train.lr", "train.weight_decay"}), "no error");
}

std::string error_of_giving(std::set<std::string> keys) {
  keys.insert("model.layers");
  return error_of(valid_config(), {}, choices("sgd"), keys);
}

TEST(CheckConfig, WantsExactlyOneBatchSize) {
  EXPECT_EQ(error_of_giving({"train.epochs", "train.global_batch", "train.per_replica_batch"}),
            "give exactly one of train.global_batch, train.per_replica_batch (samples per update, over all "
            "replicas or of each); found train.global_batch and train.per_replica_batch");
  EXPECT_EQ(error_of_giving({"train.epochs", "train.per_replica_batch", "train.replicas"}), "no error");
  EXPECT_NE(error_of_giving({"train.epochs", "train.per_replica_batch"}).find("needs train.replicas"),
            std::string::npos);
  EXPECT_EQ(error_of_giving({"train.epochs"}),
            "give exactly one of train.global_batch, train.per_replica_batch (samples per update, over all "
            "replicas or of each); none of them is given");
}

TEST(CheckConfig, WantsLayersOrAPreset) {
  const auto error_of_model = [](const std::set<std::string>& keys) {
    std::set<std::string> given{"train.global_batch", "train.epochs"};
    given.insert(keys.begin(), keys.end());
    Config config = valid_config();
    if (keys.contains("model.preset")) config.model.preset = "mlp";
    return error_of(config, {}, choices("sgd"), given);
  };
  EXPECT_EQ(error_of_model({"model.preset", "model.outputs"}), "no error");
  EXPECT_EQ(
      error_of_model({"model.preset", "model.layers"}),
      "give exactly one of model.layers, model.preset (the layers of the model); found model.layers and "
      "model.preset");
  EXPECT_EQ(error_of_model({"model.layers", "model.outputs"}),
            "model.outputs has no effect without model.preset; remove it or give model.preset");
}

TEST(CheckConfig, WantsExactlyOneLength) {
  EXPECT_EQ(error_of_giving({"train.global_batch", "train.epochs", "train.samples"}),
            "give exactly one of train.epochs, train.steps, train.samples (the length of the run); found "
            "train.epochs and train.samples");
  EXPECT_EQ(error_of_giving({"train.global_batch", "train.steps"}), "no error");
  EXPECT_EQ(
      error_of_giving({"train.global_batch"}),
      "give exactly one of train.epochs, train.steps, train.samples (the length of the run); none of them "
      "is given");
}

TEST(CheckConfig, RefusesKeysThatTheChosenEntryDoesNotRead) {
  EXPECT_EQ(error_of(valid_config(), {"train.momentum"}, choices("adam")),
            "train.momentum has no effect with optimizer 'adam', which reads train.beta1, train.beta2, "
            "train.weight_decay; remove it or change train.optimizer");
  EXPECT_EQ(error_of(valid_config(), {"train.huber_delta"}, choices("sgd", "mean_squared_error")),
            "train.huber_delta has no effect with loss 'mean_squared_error', which reads no keys of its own; "
            "remove it or change train.loss");
  EXPECT_EQ(error_of(valid_config(), {"train.weight_decay"}, choices("adam")), "no error");
}

// A format with many keys of its own does not list them all: it names who reads the key, or what to give
// here.
TEST(CheckConfig, NamesTheEntryThatReadsTheKeyAndWhatStandsForItHere) {
  static const std::vector<Entry> formats{
      {"csv", {"data.train", "data.label", "a.1", "a.2", "a.3", "a.4", "a.5", "a.6", "a.7"}},
      {"idx", {"data.train", "data.train_labels"}},
      {"numpy", {"data.train", "data.train_labels"}},
      {"synthetic", {"data.synthetic_rows"}}};
  const auto error = [](const std::string& key, const std::string& format) {
    return error_of(valid_config(), {key}, {choice_in<Entry>(formats, "data.format", format)});
  };
  EXPECT_EQ(error("data.synthetic_rows", "csv"),
            "data.synthetic_rows has no effect with format 'csv', but with synthetic; remove it or change "
            "data.format");
  EXPECT_EQ(
      error("data.train_labels", "csv"),
      "data.train_labels has no effect with format 'csv', but with idx, numpy; give data.label instead, "
      "remove it or change data.format");
  EXPECT_EQ(error("data.label", "idx"),
            "data.label has no effect with format 'idx', which reads data.train, data.train_labels; give "
            "data.train_labels instead, remove it or change data.format");
}

TEST(CheckConfig, RefusesKeysThatInitAndScalingLeaveIdle) {
  Config config = valid_config();
  EXPECT_EQ(
      error_of(config, {"model.init_std"}),
      "model.init_std has no effect with init 'he', which reads no keys of its own; remove it or change "
      "model.init");
  config.model.init = "normal";
  EXPECT_EQ(error_of(config, {"model.init_std"}), "no error");
  EXPECT_EQ(error_of(config, {"train.init_partial"}),
            "train.init_partial has no effect without train.init; remove it or give train.init");
  config.train.init = "weights.safetensors";
  EXPECT_EQ(error_of(config, {"train.init_partial"}), "no error");
  EXPECT_NE(error_of(config, {"train.lr_reference_batch"}), "no error");
  config.schedule.lr_scaling = "linear";
  EXPECT_EQ(error_of(config, {"train.lr_reference_batch"}), "no error");
}

// Of the choices among names that no catalog holds: what makes each key count.
TEST(CheckConfig, AcceptsEveryKeyWithTheChoiceThatReadsIt) {
  const std::map<std::string, std::function<void(Config&)>> readers{
      {"model.init_std", [](Config& config) { config.model.init = "normal"; }},
      {"model.outputs", [](Config& config) { config.model.preset = "mlp"; }},
      {"train.lr_reference_batch", [](Config& config) { config.schedule.lr_scaling = "sqrt"; }},
      {"train.init_partial", [](Config& config) { config.train.init = "weights.safetensors"; }},
      {"train.skip_limit", [](Config& config) { config.train.on_nan = OnNan::kSkip; }},
      {"distribute.block_nesterov", [](Config& config) { config.distribute.block_momentum = 0.9; }}};
  for (const std::string& key : keys_without_effect({}, {})) {
    SCOPED_TRACE(key);
    EXPECT_NE(error_of(valid_config(), {key}).find(key + " has no effect with"), std::string::npos);
    ASSERT_TRUE(readers.contains(key)) << "say here what reads it";
    Config config = valid_config();
    readers.at(key)(config);
    EXPECT_EQ(error_of(config, {key}), "no error");
  }
}

TEST(KeysWithoutEffect, AreThoseThatNoChosenEntryReads) {
  const std::set<std::string> idle{
      "model.init_std", "model.outputs", "train.lr_reference_batch",  "train.init_partial",
      "train.beta1",    "train.beta2",   "distribute.block_nesterov", "train.skip_limit"};
  EXPECT_EQ(keys_without_effect({}, choices("sgd")), idle);
  // A key that two catalogs know has an effect if either of the chosen entries reads it.
  const std::vector<Choice> two{{"a.x", "one", {"a.shared"}, {"a.shared"}}, {"a.y", "two", {}, {"a.shared"}}};
  EXPECT_FALSE(keys_without_effect({}, two).contains("a.shared"));
}

}  // namespace
}  // namespace lockstep
