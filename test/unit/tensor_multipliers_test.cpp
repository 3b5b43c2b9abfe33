// Factors on the rates of some tensors: which they are, what is refused, and what they do with each strategy.
#include "lockstep/distributed/update.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/tiny_run.h"

namespace lockstep::tensor_multipliers_test {

// 0.weight, 1.weight, 1.bias, 2.weight, 2.bias, 3.body.0.weight, 3.body.0.bias, 4.weight, 4.bias
Model small_model() {
  return Model({.layers = "embedding(5, 4) dense(6) layer_norm residual(dense(6)) dense(2)"}, {{1}});
}

using Factors = std::map<std::string, double>;

Factors lr_factors(const std::vector<std::string>& texts) {
  const Model model = small_model();
  const UpdateRules rules = update_rules(model, {.lr_multiplier = texts});
  Factors found;
  for (std::size_t i = 0; i < rules.multipliers.size(); ++i) {
    if (rules.multipliers[i].lr != 1) found[model.layout().params[i].name] = rules.multipliers[i].lr;
  }
  return found;
}

TEST(TensorMultipliers, PatternsFitNamesAndKinds) {
  EXPECT_EQ(lr_factors({}), Factors{});
  EXPECT_EQ(lr_factors({"1.weight: 0.1"}), (Factors{{"1.weight", 0.1}}));
  EXPECT_EQ(lr_factors({"1.*:3"}), (Factors{{"1.weight", 3}, {"1.bias", 3}}));
  EXPECT_EQ(lr_factors({"*body*weight: 2"}), (Factors{{"3.body.0.weight", 2}}));
  EXPECT_EQ(lr_factors({"embedding: 0"}), (Factors{{"0.weight", 0}}));
  EXPECT_EQ(lr_factors({" norm :2e-1 "}), (Factors{{"2.weight", 0.2}, {"2.bias", 0.2}}));
  EXPECT_EQ(lr_factors({"bias: 2"}),
            (Factors{{"1.bias", 2}, {"2.bias", 2}, {"3.body.0.bias", 2}, {"4.bias", 2}}));
}

TEST(TensorMultipliers, TheLastPatternThatFitsCounts) {
  EXPECT_EQ(lr_factors({"*: 0", "4.*: 1", "4.bias: 2"}).size(), 8U);
  EXPECT_EQ(lr_factors({"*: 0", "4.*: 1", "4.bias: 2"}).at("4.bias"), 2);
  EXPECT_EQ(lr_factors({"4.bias: 2", "bias: 3"}).at("4.bias"), 3);
}

TEST(TensorMultipliers, WeightDecaySparesWhatIsNotNamed) {
  const Model model = small_model();
  const auto of = [&](const std::vector<std::string>& texts, const std::string& name) {
    const UpdateRules rules = update_rules(model, {.weight_decay_multiplier = texts});
    const auto& params = model.layout().params;
    const auto found = std::ranges::find(params, name, &ParamInfo::name);
    return rules.multipliers[static_cast<std::size_t>(found - params.begin())].weight_decay;
  };
  EXPECT_EQ(of({}, "1.weight"), 1);
  EXPECT_EQ(of({}, "1.bias"), 0);
  EXPECT_EQ(of({}, "2.weight"), 0) << "of a normalisation";
  EXPECT_EQ(of({"bias: 0.5"}, "1.bias"), 0.5);
  EXPECT_EQ(of({"bias: 0.5"}, "2.weight"), 0);
  EXPECT_EQ(of({"*: 1"}, "2.weight"), 1);
}

TEST(TensorMultipliers, SayWhatIsWrongWithThem) {
  const auto error = [](const std::vector<std::string>& texts) {
    return test::error_text<ConfigError>([&] { lr_factors(texts); });
  };
  for (const char* text :
       {"bias", "bias: ", ": 2", "bias: two", "bias: -1", "bias: 2x", "bias: nan", "bias: 1e7", ""})
    test::expect_parts(error({text}), {"train.lr_multiplier has '", text, "a pattern, a colon and a factor"});
  test::expect_parts(error({"bias: 2", "7.*: 0.1"}),
                     {"train.lr_multiplier: '7.*' fits no tensor", "0.weight, 1.weight, 1.bias", "4.bias",
                      "bias, norm, embedding"});
  test::expect_parts(error({"biases: 2"}), {"'biases' fits no tensor"});
  test::expect_parts(error({"*: 0"}), {"freezes every tensor", "nothing would be trained"});
  const Model plain({.layers = "dense(2)"}, {{3}});
  test::expect_parts(
      test::error_text<ConfigError>([&] { update_rules(plain, {.weight_decay_multiplier = {"norm: 1"}}); }),
      {"train.weight_decay_multiplier: 'norm' fits no tensor", "which has 0.weight, 0.bias"});
}

TEST(TensorMultipliers, AreToldTensorByTensor) {
  const OptimizerOptions options{.lr_multiplier = {"embedding: 0", "bias: 2", "1.*: 0.1"},
                                 .weight_decay_multiplier = {"bias: 1"}};
  EXPECT_EQ(describe_multipliers(small_model(), options),
            (std::vector<std::string>{"Frozen: 0.weight", "Learning rate times 0.1: 1.weight, 1.bias",
                                      "Learning rate times 2: 2.bias, 3.body.0.bias, 4.bias",
                                      "Weight decay times 1: 1.bias, 2.bias, 3.body.0.bias, 4.bias"}));
  EXPECT_TRUE(describe_multipliers(small_model(), {}).empty());
}

Config multiplied_run() {
  Config config = test::tiny_config();
  config.optimizer.weight_decay = 0.1;
  config.optimizer.lr_multiplier = {"bias: 2", "4.weight: 0.5", "0.*: 0"};
  config.optimizer.weight_decay_multiplier = {"2.bias: 1"};
  config.optimizer.clip_value = 0.05;
  config.optimizer.clip_norm = 0.2;
  return config;
}

std::vector<Scalar> weights_of_frozen(const Config& config, const std::vector<Scalar>& weights) {
  const Model model(config.model, {{config.data.synthetic.features}});
  std::vector<Scalar> found;
  for (const ParamInfo& param : model.layout().params) {
    if (!param.name.starts_with("0.")) continue;
    const std::span<const Scalar> own = part(std::span<const Scalar>(weights), param.range);
    found.insert(found.end(), own.begin(), own.end());
  }
  EXPECT_EQ(found.size(), 117U);
  return found;
}

std::vector<Scalar> start_of(const Config& config) {
  const Model model(config.model, {{config.data.synthetic.features}});
  AlignedBuffer<Scalar> start(model.layout().size);
  initialise({&model.layout(), start.span()}, static_cast<std::uint64_t>(config.run.seed),
             config.model.init_std);
  return {start.span().begin(), start.span().end()};
}

TEST(TensorMultipliers, GiveTheSameBitsWithEachStrategyAndKeepThoseOfFrozenTensors) {
  for (const std::string optimizer : {"sgd", "lamb"}) {
    Config config = multiplied_run();
    config.optimizer.optimizer = optimizer;
    const std::vector<Scalar> alone = test::train_tiny_alone(config).weights;
    const std::vector<Scalar> frozen = weights_of_frozen(config, start_of(config));
    EXPECT_TRUE(weights_of_frozen(config, alone) == frozen);
    for (const std::string strategy : {"allreduce", "zero1", "central_storage", "parameter_server"}) {
      config.distribute.strategy = strategy;
      EXPECT_TRUE(test::train_tiny_on(3, config).weights == alone) << strategy << ", " << optimizer;
    }
    // The mean of seven equal weights could be another number. The last two of the 18 steps are local.
    config.distribute.strategy = "local_sgd";
    config.distribute.average_every = 4;
    config.distribute.block_momentum = 0.5;
    config.train.replicas = 7;
    EXPECT_TRUE(weights_of_frozen(config, test::train_tiny_on(2, config).weights) == frozen) << "local_sgd";
  }
}

TEST(TensorMultipliers, HoldForAsynchronousWorkersToo) {
  Config config = multiplied_run();
  config.distribute.reduction = Reduction::kNative;
  config.distribute.strategy = "parameter_server";
  config.train.replicas = 2;
  const std::vector<Scalar> frozen = weights_of_frozen(config, start_of(config));
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kBounded}) {
    config.distribute.mode = mode;
    EXPECT_TRUE(weights_of_frozen(config, test::train_tiny_on(3, config).weights) == frozen);
  }
  config.distribute.mode = ServerMode::kSync;
  config.distribute.backup_workers = 1;
  EXPECT_TRUE(weights_of_frozen(config, test::train_tiny_on(3, config).weights) == frozen);
}

}  // namespace lockstep::tensor_multipliers_test
