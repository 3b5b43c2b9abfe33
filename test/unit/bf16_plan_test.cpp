// What the plan says of a model in bf16.
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/plan/run_plan.h"
#include "support/common.h"

namespace lockstep::bf16_plan_test {

constexpr Index kWorld = 4;
constexpr Index kReplicas = 64;

RunPlan plan(const Model& model, const std::string& strategy, Index threads = 1) {
  TrainOptions train;
  train.epochs = 1;
  train.global_batch = 128;
  train.replicas = kReplicas;
  train.threads = threads;
  DistOptions distribute;
  distribute.strategy = strategy;
  return make_run_plan({.train = train,
                        .data = {},
                        .distribute = distribute,
                        .schedule = {},
                        .model = model,
                        .rows = 1000,
                        .record_bytes = 104,
                        .evaluation_rows = 100,
                        .evaluation_batch = 10,
                        .world = kWorld});
}

TEST(Bf16Plan, HoldsTheRoundedWeightsOnceForEachArenaAndForEvaluation) {
  const std::string layers = "dense(64) relu dense(10)";
  const Model wide({.layers = layers}, {{100}});
  const Model half({.layers = layers, .precision = Precision::kBf16}, {{100}});
  const Index rounded = half.layout().size * Index{sizeof(Bf16)};
  const std::pair<const char*, Index> cases[] = {{"allreduce", 1}, {"local_sgd", kReplicas / kWorld}};
  for (const auto& [strategy, arenas] : cases) {
    const RunPlan in_fp32 = plan(wide, strategy), in_bf16 = plan(half, strategy);
    EXPECT_EQ(in_bf16.memory.weights - in_fp32.memory.weights, rounded * arenas) << strategy;
    EXPECT_EQ(in_bf16.memory.evaluation - in_fp32.memory.evaluation, rounded) << strategy;
    EXPECT_EQ(in_bf16.sent_bytes, in_fp32.sent_bytes) << strategy;
    EXPECT_EQ(in_bf16.model_file_bytes, in_fp32.model_file_bytes) << strategy;
    EXPECT_NE(plan_table(std::span(&in_bf16, 1)).find(" bf16\n"), std::string::npos);
    EXPECT_NE(plan_table(std::span(&in_fp32, 1)).find(" fp32\n"), std::string::npos);
  }
}

TEST(Bf16Plan, HoldsTheLayoutsOfConvolutionsForEachThread) {
  const std::string layers = "conv2d(6, 3) relu conv2d(8, 5) flatten dense(10)";
  constexpr Index kConvolutionWeights = 6 * 9 + 8 * 6 * 25;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Model model({.layers = layers, .precision = precision}, {{12, 12}});
    const Index number = precision == Precision::kFp32 ? sizeof(Scalar) : sizeof(Bf16);
    const Index one = plan(model, "allreduce").memory.weights;
    EXPECT_EQ(plan(model, "allreduce", 3).memory.weights - one, 2 * 2 * kConvolutionWeights * number);
  }
}

}  // namespace lockstep::bf16_plan_test
