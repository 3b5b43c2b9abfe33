// Rules over several options.
#include "lockstep/config/option.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::test::check_test {

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
std::string error_of(Config config, std::set<std::string> given = {},
                     const std::vector<Choice>& in_use = choices("sgd"),
                     const std::set<std::string>& alternatives = {"model.layers", "train.global_batch",
                                                                  "train.epochs"}) {
  given.insert(alternatives.begin(), alternatives.end());
  config.given = std::move(given);
  return error_or<ConfigError>("no error", [&] { check_config(config, options(), in_use); });
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
            "model.outputs has no effect without model.preset; remove it, or give that too");
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

// A format with many keys of its own does not list them all: it names who reads the key, or what to give.
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

// What makes each key count that hangs on something else than an entry of a catalog.
TEST(CheckConfig, AcceptsEveryKeyWithWhatItIsReadWith) {
  const auto with_windows = [](Config& config) { config.data.table.windows.window = 1; };
  const std::map<std::string, std::function<void(Config&)>> readers{
      {"data.time", with_windows},
      {"data.series", with_windows},
      {"data.horizon", with_windows},
      {"data.stride", with_windows},
      {"data.future", with_windows},
      {"data.window_scale", with_windows},
      {"data.fill_gaps", with_windows},
      {"data.season", with_windows},
      {"model.init_std", [](Config& config) { config.model.init = "normal"; }},
      {"report.histograms", [](Config& config) { config.report.tensorboard = true; }},
      {"model.outputs", [](Config& config) { config.model.preset = "mlp"; }},
      {"train.lr_reference_batch", [](Config& config) { config.schedule.lr_scaling = "sqrt"; }},
      {"train.weight_decay_multiplier", [](Config& config) { config.optimizer.weight_decay = 0.1; }},
      {"train.init_map", [](Config& config) { config.train.init = "weights.safetensors"; }},
      {"train.init_rename", [](Config& config) { config.train.init = "weights.safetensors"; }},
      {"train.init_partial", [](Config& config) { config.train.init = "weights.safetensors"; }},
      {"train.skip_limit", [](Config& config) { config.train.on_nan = OnNan::kSkip; }},
      {"data.memory_limit", [](Config& config) { config.data.memory = MemoryMode::kStream; }},
      {"data.shuffle_buffer", [](Config& config) { config.data.memory = MemoryMode::kAuto; }},
      {"data.shard_by", [](Config& config) { config.data.memory = MemoryMode::kStream; }},
      {"train.keep", [](Config& config) { config.data.validation = "share(0.1)"; }},
      {"train.early_stopping", [](Config& config) { config.data.validation = "validation.csv"; }},
      {"train.early_stopping_metric", [](Config& config) { config.data.synthetic.validation_rows = 9; }},
      {"train.early_stopping_min_delta", [](Config& config) { config.train.early_stopping = "5 epochs"; }},
      {"eval.class_weights", [](Config& config) { config.train.class_weights = {"balanced"}; }},
      {"distribute.staleness", [](Config& config) { config.distribute.mode = ServerMode::kBounded; }},
      {"distribute.staleness_lr", [](Config& config) { config.distribute.mode = ServerMode::kAsync; }},
      {"distribute.cut", [](Config& config) { config.distribute.stages = 2; }},
      {"distribute.schedule", [](Config& config) { config.distribute.stages = 2; }},
      {"distribute.placement", [](Config& config) { config.distribute.stages = 2; }},
      {"distribute.block_nesterov", [](Config& config) { config.distribute.block_momentum = 0.9; }}};
  Config idle = valid_config();
  idle.data.memory = MemoryMode::kLoad;
  for (const Option& option : options()) {
    if (!option.is_read) continue;
    SCOPED_TRACE(option.key);
    EXPECT_FALSE(option.read_if.empty());
    EXPECT_EQ(error_of(idle, {option.key}),
              option.key + " has no effect without " + option.read_if + "; remove it, or give that too");
    EXPECT_TRUE(keys_without_effect(idle, options(), {}).contains(option.key));
    ASSERT_TRUE(readers.contains(option.key)) << "say here what it is read with";
    Config config = idle;
    readers.at(option.key)(config);
    EXPECT_EQ(error_of(config, {option.key}), "no error");
    EXPECT_FALSE(keys_without_effect(config, options(), {}).contains(option.key));
  }
}

TEST(KeysWithoutEffect, AreThoseThatNoChosenEntryReads) {
  const auto idle = [](const std::vector<Choice>& in_use) {
    return keys_without_effect(valid_config(), options(), in_use);
  };
  EXPECT_TRUE(idle(choices("sgd")).contains("train.beta1"));
  EXPECT_FALSE(idle(choices("adam")).contains("train.beta1"));
  EXPECT_FALSE(idle(choices("sgd")).contains("train.momentum"));
  EXPECT_TRUE(idle(choices("adam")).contains("train.momentum"));
  EXPECT_FALSE(idle(choices("adam")).contains("train.lr"));
  // A key that two catalogs know has an effect if either of the chosen entries reads it.
  const std::vector<Choice> two{{"a.x", "one", {"train.rho"}, {"train.rho"}},
                                {"a.y", "two", {}, {"train.rho"}}};
  EXPECT_FALSE(idle(two).contains("train.rho"));
}

}  // namespace lockstep::test::check_test
