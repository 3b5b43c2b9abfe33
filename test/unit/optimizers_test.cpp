#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/optim/optimizer.h"
#include "support/error_text.h"
#include "support/optimizer_run.h"
#include "support/reference_gradient.h"
#include "support/torch_references.h"

namespace lockstep {
namespace {

OptimizerOptions read_options(const nlohmann::json& given) {
  OptimizerOptions options;
  options.momentum = given.value("momentum", options.momentum);
  options.nesterov = given.value("nesterov", options.nesterov);
  options.beta1 = given.value("beta1", options.beta1);
  options.beta2 = given.value("beta2", options.beta2);
  options.epsilon = given.value("epsilon", options.epsilon);
  options.rho = given.value("rho", options.rho);
  options.momentum_decay = given.value("momentum_decay", options.momentum_decay);
  options.beta2_decay = given.value("beta2_decay", options.beta2_decay);
  options.scale_parameter = given.value("scale_parameter", options.scale_parameter);
  options.adamw_lr_multiplier = given.value("adamw_lr_multiplier", options.adamw_lr_multiplier);
  return options;
}

TensorInfo read_shape(const nlohmann::json& reference) {
  const auto found = reference.find("shape");
  if (found == reference.end()) return {};
  return {.rows = found->at(0), .columns = found->at(1), .kind = TensorInfo::Kind::kMatrix};
}

TEST(Optimizers, EqualPyTorchOver50Steps) {
  for (const nlohmann::json& reference : test::torch_references("optimizers")) {
    const std::string name = reference.at("optimizer");
    SCOPED_TRACE(name + " " + reference.at("options").dump());
    const auto optimizer =
        find_entry(optimizer_catalog(), "optimizer", name).make(read_options(reference.at("options")));
    test::OptimizerRun run(*optimizer, test::reference_start(), read_shape(reference));
    for (Index step = 1; step <= 50; ++step) {
      test::fill_reference_gradient(run.weights, step, run.gradient);
      run.step({.step = step, .lr = reference.at("lr"), .weight_decay = reference.at("weight_decay")});
      const auto expected = reference.at("weights").find(std::to_string(step));
      if (expected == reference.at("weights").end()) continue;
      SCOPED_TRACE("step " + std::to_string(step));
      test::expect_close(run.weights, *expected, 1e-6);
    }
  }
}

TEST(Optimizers, EveryOneHasAReference) {
  const nlohmann::json references = test::torch_references("optimizers");
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    const auto names_it = [&](const nlohmann::json& reference) {
      return reference.at("optimizer") == entry.name;
    };
    EXPECT_TRUE(std::ranges::any_of(references, names_it)) << entry.name;
  }
}

TEST(Optimizers, NesterovWithoutMomentumIsRefused) {
  OptimizerOptions options;
  options.nesterov = true;
  const OptimizerEntry& sgd = find_entry(optimizer_catalog(), "optimizer", "sgd");
  EXPECT_THROW(sgd.make(options), ConfigError);
  options.momentum = 0.9;
  EXPECT_NO_THROW(sgd.make(options));
}

TEST(Optimizers, StateIsKeptOnlyWhereItIsUsed) {
  OptimizerOptions options;
  const OptimizerEntry& sgd = find_entry(optimizer_catalog(), "optimizer", "sgd");
  EXPECT_EQ(sgd.make(options)->slots(), 0);
  options.momentum = 0.9;
  EXPECT_EQ(sgd.make(options)->slots(), 1);
}

TEST(Optimizers, AnUnknownNameSuggestsTheNearest) {
  try {
    find_entry(optimizer_catalog(), "optimizer", "adamm");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    test::expect_parts(error.what(), {"unknown optimizer 'adamm'; did you mean 'adam'? (known: sgd, adam, "});
  }
}

}  // namespace
}  // namespace lockstep
