// Optimizers that need whole tensors: how they see a model's, who owns them, and what their state takes.
#include "lockstep/distributed/whole_tensors.h"

#include "lockstep/base/catalog.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/model.h"
#include "support/common.h"

namespace lockstep::whole_tensors_test {

using Kind = TensorInfo::Kind;

std::unique_ptr<Optimizer> optimizer_of(const std::string& name) {
  return find_entry(optimizer_catalog(), "optimizer", name).make({});
}

TensorInfo info_of(const Model& model, const std::string& name) {
  const std::vector<ParamInfo>& params = model.layout().params;
  const auto found = std::ranges::find(params, name, &ParamInfo::name);
  EXPECT_NE(found, params.end()) << name;
  return tensor_info(model.layout(), static_cast<std::size_t>(found - params.begin()));
}

TEST(WholeTensors, TablesVectorsAndTheOutputLayerAreNoHiddenMatrices) {
  const Model model({.layers = "embedding(10, 4) dense(6) layer_norm relu dense(3)"}, {{2}});
  EXPECT_EQ(info_of(model, "0.weight").kind, Kind::kTable);
  EXPECT_EQ(info_of(model, "1.weight").kind, Kind::kMatrix);
  EXPECT_EQ(info_of(model, "1.bias").kind, Kind::kVector);
  EXPECT_EQ(info_of(model, "2.weight").kind, Kind::kVector);
  EXPECT_EQ(info_of(model, "4.weight").kind, Kind::kOutput);
  EXPECT_EQ(info_of(model, "4.bias").kind, Kind::kVector);
}

TEST(WholeTensors, AKernelIsAMatrixOfItsOutputs) {
  const Model model({.layers = "conv2d(4, 3) layer_norm relu flatten dense(5)"}, {{6, 6, 2}});
  const TensorInfo kernel = info_of(model, "0.weight");
  EXPECT_EQ(std::tuple(kernel.kind, kernel.rows, kernel.columns), std::tuple(Kind::kMatrix, 4, 2 * 3 * 3));
  EXPECT_EQ(info_of(model, "1.weight").kind, Kind::kVector) << "whatever its shape";
}

// Five layers of one size: no rank may have more than one of them above another.
TEST(WholeTensors, OwnersHaveWholeTensorsAndAboutAsMuch) {
  const Model model({.layers = "dense(40) dense(40) dense(40) dense(40) dense(40)"}, {{40}});
  for (const Index bucket_kib : {Index{0}, Index{1000}}) {
    DistOptions options;
    options.bucket_kib = bucket_kib;
    const Plan plan =
        make_plan(options, model.layout(), {.world = 3, .replicas = 3, .grain = Grain::kTensor});
    std::vector<Index> weights(3);
    Index owned = 0;
    for (Index rank = 0; rank < 3; ++rank)
      for (const Range range : plan.owned(rank))
        for (const ParamInfo& param : model.layout().params) {
          const Index mine = intersect(range, param.range).size();
          if (mine <= 0) continue;
          EXPECT_EQ(mine, param.range.size()) << param.name;
          at(weights, rank) += mine;
          ++owned;
        }
    EXPECT_EQ(owned, std::ssize(model.layout().params)) << "each tensor has one owner";
    EXPECT_LE(std::ranges::max(weights) - std::ranges::min(weights), 40 * 40 + 40) << bucket_kib;
  }
}

TEST(WholeTensors, StateIsAsSmallAsThePlanSays) {
  const Model model({.layers = "dense(64) relu dense(32) relu dense(16)"}, {{128}});
  constexpr Index kBytes = sizeof(Scalar);
  const Index matrices = 64 * 128 + 32 * 64 + 16 * 32, biases = 64 + 32 + 16;
  const std::vector<Range> all{{0, model.layout().size}};
  struct Case {
    std::string optimizer;
    Index state, scratch;
  };
  for (const Case& one : {Case{"adafactor", 64 + 128 + 32 + 64 + 16 + 32 + biases, 128},
                          Case{"muon", matrices + 16 * 32 + 2 * biases, 64 * 128 + 2 * 64 * 64}}) {
    SCOPED_TRACE(one.optimizer);
    const auto optimizer = optimizer_of(one.optimizer);
    const OptimizerMemory memory(*optimizer, model.layout());
    EXPECT_EQ(memory.saved_bytes(model.layout().count()), kBytes * one.state);
    EXPECT_EQ(memory.bytes(all, 2), kBytes * (one.state + 2 * one.scratch)) << "no gaps: sizes are round";
    ParameterUpdate update(model.layout(), *optimizer, {});
    Index held = 0;
    for (const AlignedBuffer<Scalar>& slot : update.slots()) held += std::ssize(slot.span());
    EXPECT_EQ(held, one.state);
  }
}

// Each number is written once, by the rank that saves the tensor, and read where the tensor has its owner.
TEST(WholeTensors, EachNumberOfTheStateIsSavedOnce) {
  const Model model({.layers = "dense(9) relu dense(7) relu dense(3)"}, {{12}});
  const auto optimizer = optimizer_of("muon");
  ParameterUpdate update(model.layout(), *optimizer, {});
  constexpr Index kRanks = 3;
  std::map<std::string, std::vector<int>> written;
  for (Index rank = 0; rank < kRanks; ++rank) {
    SavedState state;
    update.add_saved(state, split_evenly(model.layout().size, kRanks, rank, kAlignment));
    for (const SavedPart& part : state) {
      std::vector<int>& times = written[part.array];
      times.resize(static_cast<std::size_t>(part.size));
      for (Index i = part.written.begin; i < part.written.end; ++i) ++at(times, i);
    }
  }
  ASSERT_EQ(written.size(), 2U);
  const auto numbers = [&](const std::string& array) {
    EXPECT_LE(std::ranges::max(written[array]), 1);
    return std::accumulate(written[array].begin(), written[array].end(), Index{0});
  };
  EXPECT_EQ(numbers("optimizer.0"), model.layout().count());
  EXPECT_EQ(numbers("optimizer.1"), 3 * 7 + 9 + 7 + 3);
}

}  // namespace lockstep::whole_tensors_test
