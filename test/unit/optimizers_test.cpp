#include <Eigen/Cholesky>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"
#include "lockstep/optim/optimizer.h"
#include "support/config_text.h"
#include "support/error_text.h"
#include "support/optimizer_run.h"
#include "support/reference_gradient.h"
#include "support/seed.h"
#include "support/torch_references.h"

namespace lockstep::test::optimizers_test {

TensorInfo read_shape(const nlohmann::json& reference) {
  const auto found = reference.find("shape");
  if (found == reference.end()) return {};
  return {.rows = found->at(0), .columns = found->at(1), .kind = TensorInfo::Kind::kMatrix};
}

TEST(Optimizers, EqualPyTorchOver50Steps) {
  for (const nlohmann::json& reference : torch_references("optimizers")) {
    const std::string name = reference.at("optimizer");
    SCOPED_TRACE(name + " " + reference.at("options").dump());
    const auto optimizer = find_entry(optimizer_catalog(), "optimizer", name)
                               .make(train_config(reference.at("options")).optimizer);
    OptimizerRun run(*optimizer, reference_start(), read_shape(reference));
    for (Index step = 1; step <= 50; ++step) {
      fill_reference_gradient(run.weights, step, run.gradient);
      run.step({.step = step, .lr = reference.at("lr"), .weight_decay = reference.at("weight_decay")});
      const auto expected = reference.at("weights").find(std::to_string(step));
      if (expected == reference.at("weights").end()) continue;
      SCOPED_TRACE("step " + std::to_string(step));
      expect_close(run.weights, *expected, 1e-6);
    }
  }
}

TEST(Optimizers, EveryOneHasAReference) {
  const nlohmann::json references = torch_references("optimizers");
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    const auto names_it = [&](const nlohmann::json& reference) {
      return reference.at("optimizer") == entry.name;
    };
    EXPECT_TRUE(std::ranges::any_of(references, names_it)) << entry.name;
  }
}

// The first step of Adafactor with a constant gradient is the learning rate times the root mean square of the
// tensor, but that counts as 0.001 at least: else a bias that starts at zero would stay there for ever.
TEST(Optimizers, AdafactorMovesATensorOfZeros) {
  const auto moved = [](Scalar start, bool scales, const TensorInfo& shape) {
    OptimizerOptions options;
    options.scale_parameter = scales;
    const auto adafactor = find_entry(optimizer_catalog(), "optimizer", "adafactor").make(options);
    OptimizerRun run(*adafactor, std::vector<Scalar>(6, start), shape);
    std::ranges::fill(run.gradient, Scalar{2});
    run.step({.step = 1, .lr = 0.5, .weight_decay = 0});
    for (const Scalar weight : run.weights) EXPECT_EQ(weight, run.weights.front());
    return double{start} - double{run.weights.front()};
  };
  const TensorInfo matrix{.rows = 2, .columns = 3, .kind = TensorInfo::Kind::kMatrix};
  for (const TensorInfo& shape : {TensorInfo{}, matrix}) {
    EXPECT_NEAR(moved(0, true, shape), 0.5e-3, 1e-9);
    EXPECT_NEAR(moved(0.0005F, true, shape), 0.5e-3, 1e-9);
    EXPECT_NEAR(moved(-0.002F, true, shape), 0.5 * 0.002, 1e-8);
    EXPECT_NEAR(moved(0.25F, true, shape), 0.5 * 0.25, 1e-6);
    EXPECT_NEAR(moved(0, false, shape), 0.5, 1e-6);
    EXPECT_NEAR(moved(0.25F, false, shape), 0.5, 1e-6);
  }
}

// The mean square of the second step, 0.43 times 1 and 0.57 times 100, lags behind a gradient that grows
// tenfold: the step would be 1.3 times the learning rate, and is once that. A smaller step stays as it is.
TEST(Optimizers, AdafactorMakesNoStepAboveTheLearningRate) {
  const auto second_step = [](Scalar gradient) {
    OptimizerOptions options{.beta2_decay = 0.8, .scale_parameter = false};
    const auto adafactor = find_entry(optimizer_catalog(), "optimizer", "adafactor").make(options);
    OptimizerRun run(*adafactor, std::vector<Scalar>(4, 0));
    std::ranges::fill(run.gradient, Scalar{1});
    run.step({.step = 1, .lr = 0.125, .weight_decay = 0});
    EXPECT_NEAR(run.weights.front(), -0.125, 1e-6);
    std::ranges::fill(run.gradient, gradient);
    run.step({.step = 2, .lr = 0.125, .weight_decay = 0});
    return -double{run.weights.front()} - 0.125;
  };
  const double rest = std::pow(2, -0.8);
  EXPECT_NEAR(second_step(10), 0.125, 1e-6);
  EXPECT_NEAR(second_step(0.5), 0.125 * 0.5 / std::sqrt(1 - rest + rest * 0.25), 1e-6);
}

// Its step does not tell by what the mean is scaled, since it goes along an orthogonal matrix.
TEST(Optimizers, MuonRemembersTheMeanOfTheGradients) {
  for (const std::optional<double> momentum :
       {std::optional<double>(), std::optional(0.0), std::optional(0.5)}) {
    OptimizerOptions options;
    if (momentum) options.momentum = *momentum;
    const auto muon = find_entry(optimizer_catalog(), "optimizer", "muon").make(options);
    OptimizerRun run(*muon, reference_start(), {.rows = 3, .columns = 4, .kind = TensorInfo::Kind::kMatrix});
    double kept = 1;
    for (Index step = 1; step <= 3; ++step) {
      std::ranges::fill(run.gradient, Scalar{2});
      run.step({.step = step, .lr = 0.1});
      kept *= momentum.value_or(0.95);
      EXPECT_NEAR(run.slots[0].back(), 2 * (1 - kept), 1e-5) << kept;
    }
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
  expect_parts(error_text<ConfigError>([] { find_entry(optimizer_catalog(), "optimizer", "adamm"); }),
               {"unknown optimizer 'adamm'; did you mean 'adam'? (known: sgd, adam, "});
}

struct Orthogonalised {
  Orthogonalised(Index rows, Index columns) : start(rows, columns), result(rows * columns) {
    RandomStream random({.seed = seed()});
    for (Index i = 0; i < start.size(); ++i) start.data()[i] = random.normal();
    start /= start.norm();
    AlignedBuffer<Scalar> copy(rows * columns), scratch(orthogonalise_scratch(rows));
    std::copy_n(start.data(), start.size(), copy.data());
    orthogonalise(copy.span(), result.span(), rows, columns, scratch.span());
  }
  RowMajorMatrix start;
  AlignedBuffer<Scalar> result;
};

TEST(Orthogonalise, BringsAllSingularValuesNearOne) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {1, 9}, {5, 9}, {17, 40}, {64, 300}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Orthogonalised run(rows, columns);
    // Their squares are the eigenvalues of a symmetric matrix, positive if it is positive definite.
    const Eigen::MatrixXd result = as_eigen(as_matrix(run.result.span(), rows, columns)).cast<double>();
    const Eigen::MatrixXd squares = result * result.transpose();
    const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(rows, rows);
    EXPECT_EQ((squares - 0.6 * 0.6 * one).llt().info(), Eigen::Success);
    EXPECT_EQ((1.3 * 1.3 * one - squares).llt().info(), Eigen::Success);
  }
}

// Two matrices X and R have singular vectors in common if, and only if, X R^T and X^T R are symmetric.
TEST(Orthogonalise, KeepsTheSingularVectors) {
  const Orthogonalised run(6, 11);
  const Eigen::MatrixXf result = as_eigen(as_matrix(run.result.span(), 6, 11));
  for (const Eigen::MatrixXf& product :
       {Eigen::MatrixXf(run.start * result.transpose()), Eigen::MatrixXf(run.start.transpose() * result)}) {
    EXPECT_LT((product - product.transpose()).cwiseAbs().maxCoeff(), 3e-5F);
    EXPECT_GT(product.cwiseAbs().maxCoeff(), 0.01F);
  }
}

}  // namespace lockstep::test::optimizers_test
