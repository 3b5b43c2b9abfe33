// What every loss promises, with and without weights: the gradient is the derivative of the sum, a batch is
// the sum of its parts, and what is not a number stays visible.
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/loss.h"
#include "support/seed.h"

namespace lockstep::loss_catalog_test {
namespace {

struct Batch {
  Index rows;
  Index columns;
  Index target_columns;
  std::vector<Scalar> outputs;
  std::vector<Scalar> targets;
  std::vector<Scalar> weights = {};  // empty: none

  ConstMatrix outputs_of(Range range) const { return rows_of(outputs, columns, range); }
  ConstMatrix targets_of(Range range) const { return rows_of(targets, target_columns, range); }

  static ConstMatrix rows_of(const std::vector<Scalar>& values, Index columns, Range range) {
    return {values.data() + range.begin * columns, range.size(), columns};
  }
};

// `width`: outputs, or for a loss of several levels targets.
Batch random_batch(std::mt19937_64& rng, const OutputForm& form, Index rows, Index width) {
  const TargetKind kind = form.targets;
  const Index columns = width * form.outputs_per_target();
  const Index target_columns = kind == TargetKind::kClass ? 1 : width;
  Batch batch{rows, columns, target_columns, {}, {}, {}};
  std::normal_distribution<Scalar> normal(0, 2);
  std::uniform_int_distribution<Index> class_of(0, columns - 1);
  std::uniform_real_distribution<Scalar> fraction(0, 1);
  for (Index i = 0; i < rows * columns; ++i) batch.outputs.push_back(normal(rng));
  for (Index i = 0; i < rows * target_columns; ++i) {
    batch.targets.push_back(kind == TargetKind::kClass    ? static_cast<Scalar>(class_of(rng))
                            : kind == TargetKind::kBinary ? fraction(rng)
                            : form.power >= 2             ? fraction(rng) + Scalar{0.01F}
                            : form.power >= 1             ? std::max(normal(rng), Scalar{0})
                                                          : normal(rng));
  }
  return batch;
}

struct Evaluation {
  double value;
  std::vector<Scalar> gradient;
};

Evaluation evaluate(const Loss& loss, const Batch& batch, Range rows) {
  Evaluation result{0, std::vector<Scalar>(static_cast<std::size_t>(rows.size() * batch.columns), 99)};
  Matrix gradient = as_matrix(std::span(result.gradient), rows.size(), batch.columns);
  SampleWeights weights;
  if (!batch.weights.empty()) weights.values = part(std::span<const Scalar>(batch.weights), rows);
  result.value = evaluate_weighted(loss, batch.outputs_of(rows), batch.targets_of(rows), weights, &gradient);
  return result;
}

struct Variant {
  std::string name;
  std::unique_ptr<Loss> loss;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const LossEntry& entry : loss_catalog()) {
    all.push_back({entry.name, entry.make({})});
    LossOptions options;
    options.label_smoothing = 0.1;
    options.huber_delta = 0.5;
    options.quantiles = {0.1, 0.5, 0.95};
    options.tweedie_power = 1.2;
    options.focal_gamma = 0.5;
    options.focal_alpha = 0.25;
    all.push_back({entry.name + " with options", entry.make(options)});
  }
  return all;
}

TEST(LossCatalog, TheGradientIsTheDerivative) {
  std::mt19937_64 rng(test::seed());
  constexpr Scalar kStep = 1.F / 128;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    for (const Index columns : {1, 3, 19}) {
      Batch batch = random_batch(rng, variant.loss->form(), 4, columns);
      batch.weights = {1, 0.5, 0, 2};
      const Evaluation whole = evaluate(*variant.loss, batch, {0, batch.rows});
      for (std::size_t i = 0; i < batch.outputs.size(); ++i) {
        const Scalar middle = batch.outputs[i];
        const Scalar high = middle + kStep;
        const Scalar low = middle - kStep;
        batch.outputs[i] = high;
        const double above = evaluate(*variant.loss, batch, {0, batch.rows}).value;
        batch.outputs[i] = low;
        const double below = evaluate(*variant.loss, batch, {0, batch.rows}).value;
        batch.outputs[i] = middle;
        // A loss may have a kink inside the step: the gradient lies between the slopes on both sides.
        const double left = (whole.value - below) / (static_cast<double>(middle) - static_cast<double>(low));
        const double right =
            (above - whole.value) / (static_cast<double>(high) - static_cast<double>(middle));
        const double tolerance = 1e-3 * std::abs(left + right) / 2 + 2e-4;
        EXPECT_GE(whole.gradient[i], std::min(left, right) - tolerance)
            << columns << " columns, element " << i;
        EXPECT_LE(whole.gradient[i], std::max(left, right) + tolerance)
            << columns << " columns, element " << i;
      }
    }
  }
}

TEST(LossCatalog, ABatchIsTheSumOfItsParts) {
  std::mt19937_64 rng(test::seed());
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    for (const Index columns : {1, 10, 37}) {
      const Batch batch = random_batch(rng, variant.loss->form(), 33, columns);
      const Evaluation whole = evaluate(*variant.loss, batch, {0, 33});
      const Evaluation first = evaluate(*variant.loss, batch, {0, 13});
      const Evaluation second = evaluate(*variant.loss, batch, {13, 33});
      std::vector<Scalar> joined = first.gradient;
      joined.insert(joined.end(), second.gradient.begin(), second.gradient.end());
      EXPECT_NEAR(whole.value, first.value + second.value, 1e-6 * std::abs(whole.value));
      EXPECT_EQ(whole.gradient, joined) << "a row's gradient depends on its neighbours";
    }
  }
}

TEST(LossCatalog, AWeightCountsARowSoManyTimesAndOneChangesNoBit) {
  std::mt19937_64 rng(test::seed());
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    for (const Index columns : {1, 10}) {
      Batch batch = random_batch(rng, variant.loss->form(), 9, columns);
      const Evaluation plain = evaluate(*variant.loss, batch, {0, 9});
      batch.weights.assign(9, 1);
      const Evaluation ones = evaluate(*variant.loss, batch, {0, 9});
      EXPECT_EQ(ones.value, plain.value);
      EXPECT_EQ(ones.gradient, plain.gradient);
      batch.weights = {1, 1, 0, 1, 1, 3, 1, 1, 1};
      const Evaluation some = evaluate(*variant.loss, batch, {0, 9});
      const double zero = evaluate(*variant.loss, batch, {2, 3}).value;
      EXPECT_EQ(zero, 0);
      batch.weights = {};
      const double removed = evaluate(*variant.loss, batch, {2, 3}).value;
      const double tripled = evaluate(*variant.loss, batch, {5, 6}).value;
      EXPECT_NEAR(some.value, plain.value - removed + 2 * tripled, 1e-9 * std::abs(plain.value));
      for (std::size_t i = 0; i < plain.gradient.size(); ++i) {
        const auto row = static_cast<Index>(i) / batch.columns;
        const Scalar times = row == 2 ? 0 : row == 5 ? 3 : 1;
        EXPECT_EQ(some.gradient[i], times * plain.gradient[i]) << "row " << row;
      }
    }
  }
}

TEST(LossCatalog, WhatIsNotFiniteStaysVisible) {
  std::mt19937_64 rng(test::seed());
  using Limits = std::numeric_limits<Scalar>;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    for (const Index columns : {1, 3, 40}) {
      for (const Scalar bad : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
        Batch batch = random_batch(rng, variant.loss->form(), 3, columns);
        EXPECT_TRUE(std::isfinite(evaluate(*variant.loss, batch, {0, 3}).value));
        for (Scalar& output : batch.outputs) {
          const Scalar good = std::exchange(output, bad);
          EXPECT_FALSE(std::isfinite(evaluate(*variant.loss, batch, {0, 3}).value)) << "hides " << bad;
          output = good;
        }
      }
    }
  }
}

TEST(LossCatalog, NoRowsAreNoLoss) {
  std::mt19937_64 rng(test::seed());
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const Batch batch = random_batch(rng, variant.loss->form(), 1, 4);
    EXPECT_EQ(evaluate(*variant.loss, batch, {0, 0}).value, 0);
  }
}

}  // namespace
}  // namespace lockstep::loss_catalog_test
