// What every optimizer promises: a step on slices has the bits of the step on the whole, a scale those of a
// scaled gradient, and weights and slots are all there is to a resume.
#include "lockstep/optim/optimizer.h"
#include "support/optimizer_run.h"
#include "support/seed.h"

namespace lockstep::optimizer_catalog_test {
namespace {

enum class Form { kVector, kWide, kHigh };

struct Variant {
  std::string name;
  std::unique_ptr<Optimizer> optimizer;
  Form form = Form::kVector;

  test::OptimizerRun run(std::vector<Scalar> start) const {
    const Index size = std::ssize(start);
    if (form == Form::kVector) return {*optimizer, std::move(start)};
    Index divisor = 2;
    while (size % divisor != 0) ++divisor;
    const Index rows = form == Form::kWide ? divisor : size / divisor;
    const TensorInfo shape{.rows = rows, .columns = size / rows, .kind = TensorInfo::Kind::kMatrix};
    return {*optimizer, std::move(start), shape};
  }
};

// Every optimizer of the catalog with its own momentum, without and with some, and on matrices if it looks at
// their shape.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerOptions options;
    all.push_back({entry.name, entry.make(options)});
    options.momentum = 0;
    all.push_back({entry.name + " without momentum", entry.make(options)});
    options.scale_parameter = true;
    options.momentum = 0.9;
    all.push_back({entry.name + " with momentum", entry.make(options)});
    if (all.back().optimizer->needs_whole_tensors()) {
      all.push_back({entry.name + " of a wide matrix", entry.make(options), Form::kWide});
      all.push_back({entry.name + " of a high matrix", entry.make(options), Form::kHigh});
    }
    options.nesterov = true;
    all.push_back({entry.name + " with Nesterov's momentum", entry.make(options)});
  }
  return all;
}

std::vector<Scalar> random_values(std::mt19937_64& rng, std::size_t size) {
  std::normal_distribution<Scalar> normal;
  std::vector<Scalar> values(size);
  for (Scalar& value : values) value = normal(rng);
  return values;
}

StepInfo info_of(Index step) {
  return {.step = step, .lr = 0.01 / static_cast<double>(step), .weight_decay = 0.1};
}

// Ranges of 0 to 40 elements, so of every offset from an aligned address.
std::vector<Range> random_slices(std::mt19937_64& rng, Index size) {
  std::vector<Range> slices;
  for (Index begin = 0; begin < size;) {
    const Index end = std::min(size, begin + std::uniform_int_distribution<Index>(0, 40)(rng));
    slices.push_back({begin, end});
    begin = end;
  }
  std::ranges::shuffle(slices, rng);
  return slices;
}

TEST(OptimizerCatalog, SlicesHaveTheBitsOfTheWhole) {
  std::mt19937_64 rng(test::seed());
  constexpr Index kSize = 3001;
  for (const Variant& variant : variants()) {
    if (variant.optimizer->needs_whole_tensors()) continue;
    SCOPED_TRACE(variant.name);
    test::OptimizerRun whole = variant.run(random_values(rng, kSize));
    test::OptimizerRun sliced = whole;
    for (Index step = 1; step <= 5; ++step) {
      whole.gradient = sliced.gradient = random_values(rng, kSize);
      whole.step(info_of(step));
      for (const Range& slice : random_slices(rng, kSize)) sliced.update(slice, info_of(step));
      sliced.apply_direction(info_of(step));
    }
    EXPECT_EQ(whole.weights, sliced.weights);
    EXPECT_EQ(whole.slots, sliced.slots);
  }
}

TEST(OptimizerCatalog, AScaleHasTheBitsOfAScaledGradient) {
  std::mt19937_64 rng(test::seed());
  constexpr std::size_t kSize = 301;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    test::OptimizerRun scaled = variant.run(random_values(rng, kSize));
    test::OptimizerRun plain = scaled;
    for (Index step = 1; step <= 3; ++step) {
      StepInfo info = info_of(step);
      scaled.gradient = plain.gradient = random_values(rng, kSize);
      for (Scalar& g : plain.gradient) g *= 0.3F;
      plain.step(info);
      info.gradient_scale = 0.3F;
      scaled.step(info);
    }
    EXPECT_EQ(scaled.weights, plain.weights);
    EXPECT_EQ(scaled.slots, plain.slots);
  }
}

TEST(OptimizerCatalog, WeightsAndSlotsAreEnoughToResume) {
  std::mt19937_64 rng(test::seed());
  constexpr std::size_t kSize = 333;
  const std::vector<Variant> again = variants();
  for (std::size_t number = 0; const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const Optimizer& fresh = *again[number++].optimizer;
    std::vector<std::vector<Scalar>> gradients;
    for (int step = 0; step < 20; ++step) gradients.push_back(random_values(rng, kSize));
    const auto run_steps = [&](test::OptimizerRun& run, Index first, Index last) {
      for (Index step = first; step <= last; ++step) {
        run.gradient = at(gradients, step - 1);
        run.step(info_of(step));
      }
    };

    test::OptimizerRun straight = variant.run(random_values(rng, kSize));
    test::OptimizerRun before = straight;
    run_steps(straight, 1, 20);

    run_steps(before, 1, 10);
    test::OptimizerRun resumed(fresh, before.weights, before.tensor);
    resumed.slots = before.slots;
    run_steps(resumed, 11, 20);

    EXPECT_EQ(straight.weights, resumed.weights);
    EXPECT_EQ(straight.slots, resumed.slots);
  }
}

// Schedules change the rate: what an optimizer remembers of earlier steps must not depend on the rate of
// those.
TEST(OptimizerCatalog, TheRateMovesTheWeightsAndNotTheState) {
  std::mt19937_64 rng(test::seed());
  constexpr std::size_t kSize = 33;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    test::OptimizerRun steady = variant.run(random_values(rng, kSize));
    test::OptimizerRun changing = steady;
    for (Index step = 1; step <= 6; ++step) {
      steady.gradient = changing.gradient = random_values(rng, kSize);
      steady.update({0, kSize}, {.step = step, .lr = 0.5});
      changing.update({0, kSize}, {.step = step, .lr = step % 2 == 0 ? 0.001 : 2});
      EXPECT_EQ(changing.slots, steady.slots) << "step " << step;
    }
  }
}

TEST(OptimizerCatalog, AStepIsProportionalToItsRate) {
  std::mt19937_64 rng(test::seed());
  constexpr std::size_t kSize = 33;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    test::OptimizerRun start = variant.run(random_values(rng, kSize));
    for (Index step = 1; step <= 3; ++step) {
      start.gradient = random_values(rng, kSize);
      start.step({.step = step, .lr = 0.125});
    }
    start.gradient = random_values(rng, kSize);
    const auto weights_with = [&](double lr) {
      test::OptimizerRun run = start;
      run.step({.step = 4, .lr = lr});
      return run.weights;
    };
    EXPECT_EQ(weights_with(0), start.weights);
    const std::vector<Scalar> once = weights_with(0.25);
    const std::vector<Scalar> four_times = weights_with(1);
    for (std::size_t i = 0; i < kSize; ++i) {
      const Scalar move = once[i] - start.weights[i];
      EXPECT_NEAR(four_times[i] - start.weights[i], 4 * move, 1e-5) << "weight " << i;
    }
  }
}

TEST(OptimizerCatalog, WeightsThatNothingPullsStayWhereTheyAre) {
  std::mt19937_64 rng(test::seed());
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    test::OptimizerRun run = variant.run(random_values(rng, 33));
    const std::vector<Scalar> start = run.weights;
    for (Index step = 1; step <= 3; ++step) {
      std::ranges::fill(run.gradient, Scalar{0});
      run.update({0, 33}, {.step = step, .lr = 0.5});
      EXPECT_EQ(run.weights, start) << "step " << step;
    }
  }
}

TEST(OptimizerCatalog, EntriesExplainThemselves) {
  for (const OptimizerEntry& entry : optimizer_catalog()) EXPECT_FALSE(entry.help.empty()) << entry.name;
}

TEST(OptimizerCatalog, OnlyATrustRatioLeavesTheWeightsAlone) {
  std::mt19937_64 rng(test::seed());
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    test::OptimizerRun run = variant.run(random_values(rng, 50));
    run.gradient = random_values(rng, 50);
    const test::OptimizerRun start = run;
    run.update({0, 50}, info_of(1));
    EXPECT_EQ(run.weights == start.weights, variant.optimizer->uses_trust_ratio());
    if (variant.optimizer->needs_whole_tensors()) continue;  // which may use the gradient up
    EXPECT_EQ(run.gradient != start.gradient, variant.optimizer->uses_trust_ratio());
  }
}

}  // namespace
}  // namespace lockstep::optimizer_catalog_test
