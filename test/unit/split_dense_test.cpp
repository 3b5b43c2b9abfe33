// dense(units, split=rows): its blocks, and its numbers as they are defined.
#include "lockstep/math/fixed_tree.h"
#include "lockstep/nn/split_layer.h"
#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep::split_dense_test {

constexpr Index kRows = 7;
constexpr Index kInputs = 48;  // a block has a multiple of 64 units
constexpr Index kUnits = 300;

TEST(UnitBlocks, AreEvenAndBeginWhereBlocksOfWeightsDo) {
  for (const Index inputs : {Index{784}, Index{9216}, Index{100}, Index{33}})
    for (const Index units : {Index{1}, Index{500}, Index{4096}, Index{65536}}) {
      SCOPED_TRACE(testing::Message() << units << " units of " << inputs);
      const UnitBlocks blocks(units, inputs);
      ASSERT_GE(blocks.count(), 1);
      ASSERT_LE(blocks.count(), UnitBlocks::kMaxBlocks);
      Index end = 0;
      for (Index block = 0; block < blocks.count(); ++block) {
        const Range mine = blocks.units(block);
        EXPECT_EQ(mine.begin, end);
        EXPECT_FALSE(mine.empty());
        EXPECT_EQ(mine.begin * inputs % kSquareBlock, 0);
        end = mine.end;
      }
      EXPECT_EQ(end, units);
      EXPECT_EQ(blocks.units(blocks.all()), (Range{0, units}));
    }
  const UnitBlocks wide(65536, 9216);
  EXPECT_EQ(wide.count(), UnitBlocks::kMaxBlocks);
  EXPECT_EQ(wide.units(3), (Range{3 * 4096, 4 * 4096}));
}

TEST(UnitBlocks, KnowTheBlockOfAUnit) {
  const UnitBlocks blocks(kUnits, kInputs);
  for (Index unit = 0; unit < kUnits; ++unit)
    EXPECT_TRUE(blocks.units(blocks.block_of(unit)).contains(unit)) << unit;
}

TEST(SplitDense, CopiesOutputsThereAndBack) {
  const Model model({.layers = "dense(300, split=rows)"}, {{kInputs}});
  const SplitLayer& layer = *model.op(0).layer->split();
  const UnitBlocks& blocks = layer.blocks();
  std::vector<Scalar> values(kRows * kUnits);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Scalar>(i);
  const std::vector<Scalar> inputs(kRows * kInputs);
  const ConstMatrix x(inputs.data(), kRows, kInputs);
  const BlockBegins begins = layer.find_outputs(x);
  const Range some{1, blocks.count() - 1}, units = blocks.units(some);
  std::vector<Scalar> gathered(static_cast<std::size_t>(kRows * units.size()));
  const BlockOutputs<Scalar> outputs{begins, some, kRows, gathered.data()};
  EXPECT_EQ(outputs.size(), std::ssize(gathered));
  layer.gather(x, ConstMatrix(values.data(), kRows, kUnits), outputs);
  const Range first = blocks.units(1);
  EXPECT_EQ(gathered[0], static_cast<Scalar>(first.begin));
  EXPECT_EQ(at(gathered, first.size()), static_cast<Scalar>(kUnits + first.begin));
  std::vector<Scalar> back(values.size(), Scalar{-1});
  Matrix y(back.data(), kRows, kUnits);
  layer.scatter(x, outputs.as_const(), y);
  for (Index i = 0; i < std::ssize(back); ++i)
    EXPECT_EQ(at(back, i), units.contains(i % kUnits) ? at(values, i) : Scalar{-1});
}

TEST(SumAlongTree, AddsAsMergesDo) {
  for (Index leaves = 1; leaves <= 9; ++leaves)
    for (Index missing = 0; missing < (Index{1} << leaves); ++missing) {
      std::vector<Scalar> values(static_cast<std::size_t>(leaves));
      std::vector<Range> there;
      std::vector<std::span<Scalar>> pieces;
      for (Index i = 0; i < leaves; ++i) at(values, i) = std::pow(Scalar{1.7F}, static_cast<Scalar>(9 * i));
      std::vector<Scalar> merged = values;
      for (Index i = 0; i < leaves; ++i) {
        if ((missing >> i & 1) != 0) continue;
        there.push_back({i, i + 1});
        pieces.push_back(part(std::span(merged), {i, i + 1}));
      }
      Scalar sum = -1;
      std::vector<Scalar> spare(static_cast<std::size_t>(spare_for_tree(leaves, 1)));
      const bool any = sum_along_tree({0, leaves}, {&sum, 1}, spare, [&](Index i, std::span<Scalar> to) {
        if ((missing >> i & 1) != 0) return false;
        to.front() = at(values, i);
        return true;
      });
      EXPECT_EQ(any, !there.empty());
      if (!any) continue;
      const Range whole{0, leaves};
      const MergePlan plan = plan_merges(there, std::span(&whole, 1));
      apply_merges(plan.merges, pieces);
      EXPECT_EQ(sum, at(pieces, plan.survivors.front()).front()) << leaves << " " << missing;
    }
}

struct Passed {
  std::vector<Scalar> outputs, gradient;
};

// The layer with one before it, whose gradient comes out of the gradient of its input.
Passed pass(const std::string& split) {
  const Model model({.layers = "dense(48) dense(300" + split + ")", .init = "xavier"}, {{20}});
  const std::vector<Scalar> weights = test::random_values(model.layout().size, 1);
  const std::vector<Scalar> x = test::random_values(kRows * 20, 2);
  Workspace workspace(model, kRows, ActivationRetention::kForTraining);
  const ConstMatrix outputs = workspace.forward({.values = {.weights = weights, .state = {}},
                                                 .x = ConstMatrix(x.data(), kRows, 20),
                                                 .batch = {.training = true}});
  std::vector<Scalar> gradient(weights.size());
  std::ranges::copy(test::random_values(kRows * kUnits, 3), workspace.output_gradient().data());
  workspace.backward(gradient, Write::kReplace, {});
  return {{outputs.data(), outputs.data() + outputs.size()}, gradient};
}

TEST(SplitDense, GivesTheNumbersOfALayerThatIsNotSplit) {
  const Passed split = pass(", split=rows"), whole = pass("");
  const auto expect_near = [](const std::vector<Scalar>& found, const std::vector<Scalar>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    double largest = 1;  // sums that cancel are as exact as their parts
    for (const Scalar value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5 * largest) << i;
  };
  expect_near(split.outputs, whole.outputs);
  expect_near(split.gradient, whole.gradient);
}

// What other ranks would compute by themselves: each block from operands of its own.
TEST(SplitDense, IsComputedBlockByBlock) {
  const Passed found = pass(", split=rows");
  const Model model({.layers = "dense(48) dense(300)", .init = "xavier"}, {{20}});
  const std::vector<Scalar> weights = test::random_values(model.layout().size, 1);
  const auto tensor = [&](const std::vector<Scalar>& arena, std::size_t param) {
    return part(std::span(arena), model.layout().params[param].range);
  };
  const std::vector<Scalar> features = test::random_values(kRows * 20, 2);
  std::vector<Scalar> hidden(kRows * kInputs);
  Matrix x(hidden.data(), kRows, kInputs);
  multiply_forward(ConstMatrix(features.data(), kRows, 20), as_matrix(tensor(weights, 0), kInputs, 20),
                   tensor(weights, 1), x);
  const std::vector<Scalar> dy = test::random_values(kRows * kUnits, 3);
  const UnitBlocks blocks(kUnits, kInputs);
  ASSERT_EQ(blocks.count(), 5);
  std::vector<std::vector<Scalar>> dx;
  for (Index block = 0; block < blocks.count(); ++block) {
    const Range units = blocks.units(block);
    const std::span<const Scalar> own =
        part(tensor(weights, 2), {units.begin * kInputs, units.end * kInputs});
    const ConstMatrix w = as_matrix(own, units.size(), kInputs);
    std::vector<Scalar> outputs(static_cast<std::size_t>(kRows * units.size()));
    Matrix y(outputs.data(), kRows, units.size());
    multiply_forward(ConstMatrix(x.data(), kRows, kInputs), w, part(tensor(weights, 3), units), y);
    std::vector<Scalar> dy_block(outputs.size());
    for (Index row = 0; row < kRows; ++row)
      for (Index unit = 0; unit < units.size(); ++unit) {
        EXPECT_EQ(y(row, unit), at(found.outputs, row * kUnits + units.begin + unit));
        at(dy_block, row * units.size() + unit) = at(dy, row * kUnits + units.begin + unit);
      }
    const ConstMatrix dy_of_block(dy_block.data(), kRows, units.size());
    std::vector<Scalar> dw(own.size());
    Matrix dweight(dw.data(), units.size(), kInputs);
    multiply_backward_weights(dy_of_block, ConstMatrix(x.data(), kRows, kInputs), {0, units.size()}, dweight,
                              Write::kReplace);
    const std::span<const Scalar> gradient =
        part(tensor(found.gradient, 2), {units.begin * kInputs, units.end * kInputs});
    EXPECT_TRUE(std::ranges::equal(dw, gradient)) << block;
    Matrix partial(dx.emplace_back(kRows * kInputs).data(), kRows, kInputs);
    multiply_backward_data(dy_of_block, w, partial);
  }
  // The tree over five leaves.
  std::vector<Scalar> sum(dx.front().size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = ((dx[0][i] + dx[1][i]) + (dx[2][i] + dx[3][i])) + dx[4][i];
  std::vector<Scalar> first(tensor(found.gradient, 0).size());
  Matrix first_gradient(first.data(), kInputs, 20);
  multiply_backward_weights(ConstMatrix(sum.data(), kRows, kInputs), ConstMatrix(features.data(), kRows, 20),
                            {0, kInputs}, first_gradient, Write::kReplace);
  EXPECT_TRUE(std::ranges::equal(first, tensor(found.gradient, 0)));
}

}  // namespace lockstep::split_dense_test
