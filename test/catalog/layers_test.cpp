// Every layer of the catalog: its gradients against finite differences, and a batch against its parts.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/random.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep {
namespace {

constexpr Index kRows = 5;
const Shape kInput{{3, 4}};

// The layer between two dense ones, so that it has a gradient above it and passes one below it.
Model model_with(const LayerEntry& entry) {
  ModelOptions options;
  options.layers = "dense(6, init=xavier) " + entry.example + " dense(4, init=xavier)";
  return Model(options, kInput);
}

AlignedBuffer<Scalar> random_values(Index size, std::uint64_t stream) {
  RandomStream random({.seed = test::seed(), .a = stream});
  AlignedBuffer<Scalar> values(size);
  for (Scalar& value : values.span()) value = random.normal();
  return values;
}

// A scalar function of the outputs with a known gradient: the sum of outputs times fixed random factors.
double weighted_sum(const ConstMatrix& outputs, const AlignedBuffer<Scalar>& factors) {
  double sum = 0;
  for (Index i = 0; i < outputs.size(); ++i)
    sum += static_cast<double>(outputs.data()[i]) * factors.data()[i];
  return sum;
}

struct Fixture {
  explicit Fixture(const LayerEntry& entry)
      : model(model_with(entry)),
        workspace(model, kRows, true),
        x_values(random_values(kRows * kInput.size(), 1)),
        factors(random_values(kRows * model.output().size(), 2)),
        weights(model.layout().size),
        gradient(model.layout().size) {
    initialise({&model.layout(), weights.span()}, test::seed(), 1.0);
    // Biases off zero, and every tensor in play.
    RandomStream random({.seed = test::seed(), .a = 3});
    for (Scalar& weight : weights.span()) weight += Scalar{0.05F} * random.normal();
  }

  ConstMatrix x(Range rows) const {
    return {x_values.data() + rows.begin * kInput.size(), rows.size(), kInput.size()};
  }

  void run(Range rows, std::span<Scalar> into, Write write) {
    workspace.forward(weights.span(), x(rows));
    Matrix dy = workspace.output_gradient();
    const Index outputs = model.output().size();
    std::copy_n(factors.data() + rows.begin * outputs, rows.size() * outputs, dy.data());
    workspace.backward(weights.span(), x(rows), into, write, {});
  }

  double value() { return weighted_sum(workspace.forward(weights.span(), x({0, kRows})), factors); }

  Model model;
  Workspace workspace;
  AlignedBuffer<Scalar> x_values;
  AlignedBuffer<Scalar> factors;
  AlignedBuffer<Scalar> weights;
  AlignedBuffer<Scalar> gradient;
};

TEST(Layers, GradientsEqualFiniteDifferences) {
  for (const LayerEntry& entry : layer_catalog()) {
    SCOPED_TRACE(entry.name);
    Fixture fixture(entry);
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    const double at = fixture.value();
    int kinks = 0;
    int checked = 0;
    for (const ParamInfo& param : fixture.model.layout().params) {
      for (Index i = param.range.begin; i < param.range.end; ++i) {
        Scalar& weight = fixture.weights.data()[i];
        const Scalar kept = weight;
        const Scalar step = 2e-3F;
        weight = kept + step;
        const double above = (fixture.value() - at) / static_cast<double>(step);
        weight = kept - step;
        const double below = (at - fixture.value()) / static_cast<double>(step);
        weight = kept;
        ++checked;
        // A step across the kink of a piecewise linear layer has no derivative to compare with.
        const double tolerance = 1e-2 * std::max(1.0, std::abs(above));
        if (std::abs(above - below) > 2 * tolerance) {
          ++kinks;
          continue;
        }
        EXPECT_NEAR(fixture.gradient.data()[i], (above + below) / 2, tolerance) << param.name << " " << i;
      }
    }
    EXPECT_LE(kinks, checked / 5);
    EXPECT_GT(checked, 50);
  }
}

TEST(Layers, ABatchIsTheSumOfItsParts) {
  for (const LayerEntry& entry : layer_catalog()) {
    SCOPED_TRACE(entry.name);
    Fixture fixture(entry);
    fixture.run({0, kRows}, fixture.gradient.span(), Write::kReplace);
    AlignedBuffer<Scalar> parts(fixture.gradient.size());
    fixture.run({0, 2}, parts.span(), Write::kReplace);
    fixture.run({2, kRows}, parts.span(), Write::kAdd);
    for (Index i = 0; i < parts.size(); ++i) {
      const double whole = fixture.gradient.data()[i];
      EXPECT_NEAR(parts.data()[i], whole, 1e-5 * std::max(1.0, std::abs(whole)));
    }
  }
}

TEST(Layers, NothingThatIsNotANumberIsHidden) {
  for (const LayerEntry& entry : layer_catalog()) {
    SCOPED_TRACE(entry.name);
    Fixture fixture(entry);
    fixture.x_values.data()[0] = std::nanf("");
    EXPECT_TRUE(std::isnan(fixture.value()));
    ASSERT_TRUE(fixture.workspace.first_bad_layer().has_value());
    EXPECT_EQ(*fixture.workspace.first_bad_layer(), 0);
  }
}

TEST(Layers, EntriesDescribeThemselves) {
  for (const LayerEntry& entry : layer_catalog()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(entry.help.empty());
    EXPECT_TRUE(entry.signature.starts_with(entry.name));
    EXPECT_TRUE(entry.example.starts_with(entry.name));
  }
}

}  // namespace
}  // namespace lockstep
