// train.precision: refused where it cannot run, the same bits on any number of ranks, and the same in
// training, evaluation and prediction. ONEDNN_MAX_CPU_ISA makes oneDNN take the CPU for a lesser one.
#include "lockstep/math/kernels.h"
#include "support/trainer_runs.h"

namespace lockstep::test::precision_test {
namespace {

constexpr const char* kWithoutBf16 = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI ";
constexpr const char* kWithoutAvx512 = "ONEDNN_MAX_CPU_ISA=AVX2 ";
constexpr const char* kBf16 = "--train.precision bf16 --debug.emulate_bf16 true";

class InBf16 : public SmallRuns {
 protected:
  void SetUp() override {
    if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << kernel_back_end() << " has no bf16";
  }

  std::string model_of(int ranks, const std::string& more) const {
    return read_file(trained(ranks, more) + "/model.safetensors");
  }
};

TEST_F(InBf16, IsRefusedOnACpuWithoutIt) {
  const std::string run = experiment_.fresh_run();
  expect_failed(run_command(kWithoutBf16 + trainer_path() + " " + words(run, "--train.precision bf16")),
                kExitConfig, {"train.precision is \"bf16\"", "use --train.precision fp32"});
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST_F(InBf16, IsRefusedByAllRanksIfOneHasNoneWithItsNumber) {
  if (!kernel_back_end().starts_with("oneDNN")) GTEST_SKIP() << "Eigen is the same on any CPU";
  const std::string command = trainer_path() + " " + words(experiment_.fresh_run(), kBf16);
  expect_failed(run_command(mpiexec_of({command, kWithoutAvx512 + command})), kExitConfig,
                {"rank 1: train.precision is \"bf16\"", "(avx2)"});
}

TEST_F(InBf16, GivesTheSameBitsOnAnyNumberOfRanksAndThreads) {
  for (const std::string model : {"'dense(16) relu dense(4)'",
                                  "'conv2d(4, 3, padding=same) relu flatten dense(8) batch_norm relu "
                                  "dense(4)' --model.batch_norm sync"}) {
    const std::string flags =
        fmt::format("{} --distribute.reduction ordered --train.momentum 0.9 --model.layers {}", kBf16, model);
    const std::string alone = model_of(1, flags);
    EXPECT_TRUE(model_of(2, flags) == alone) << model;
    EXPECT_TRUE(model_of(3, flags + " --train.threads 2") == alone) << model;
    EXPECT_TRUE(model_of(2, flags + " --distribute.strategy central_storage") == alone) << model;
    EXPECT_FALSE(model_of(1, flags + " --train.precision fp32") == alone) << model << ": nothing was rounded";
  }
}

TEST_F(InBf16, ReplicasWithWeightsOfTheirOwnRoundTheirOwn) {
  const std::string flags = fmt::format(
      "{} --distribute.reduction ordered --distribute.strategy local_sgd --distribute.local_after '3 steps' "
      "--model.layers 'conv2d(8, 3) relu conv2d(8, 1) flatten dense(10)'",
      kBf16);
  const std::string alone = model_of(1, flags);
  EXPECT_TRUE(model_of(2, flags) == alone);
  EXPECT_TRUE(model_of(8, flags) == alone) << "with one replica on each rank";
}

double reported_loss(const std::string& run) {
  return parse_json<nlohmann::json>(read_file(run + "/summary.json"))["evaluation"]["loss"].get<double>();
}

// With weights rounded anew in each step; the last steps of a run with those of the first go elsewhere.
TEST_F(InBf16, LearnsAsInFp32) {
  for (const std::string strategy : {"allreduce", "local_sgd"}) {
    const std::string flags =
        "--train.momentum 0.9 --train.epochs 6 --distribute.strategy " + strategy + " --train.precision ";
    const double wide = reported_loss(trained(1, flags + "fp32"));
    const double half = reported_loss(trained(1, flags + "bf16 --debug.emulate_bf16 true"));
    EXPECT_NEAR(half, wide, 0.01 * wide) << strategy;
  }
}

TEST_F(InBf16, EvaluationAndPredictionAreInThePrecisionOfTheRun) {
  const std::string run = trained(2, kBf16);
  const double reported = reported_loss(run);
  const auto loss = [&](const std::string& flags) {
    return evaluate(1, "--model " + run + " " + flags)["test"]["loss"].get<double>();
  };
  EXPECT_NEAR(loss(""), reported, 1e-6);

  const std::string wide = "--train.precision fp32 --debug.emulate_bf16 false ";
  EXPECT_NEAR(loss(wide), reported, 0.01 * reported);
  EXPECT_GT(std::abs(loss(wide) - reported), 2e-6) << "evaluated in bf16 all the same";

  const auto predict = [&](int ranks, const std::string& flags) {
    const std::string output = run + "/p.npy";
    succeed(ranks, fmt::format("predict --model {} --input {} --output {} --overwrite {}", run,
                               experiment_.test().images, output, flags));
    return read_file(output);
  };
  EXPECT_TRUE(predict(1, "") == predict(2, "--eval.batch 57"));
  EXPECT_FALSE(predict(1, "") == predict(1, wide));
}

// Where models are evaluated need not be where they were trained.
TEST_F(InBf16, OtherMachinesEvaluateInFp32AndExportAsItIs) {
  const std::string run = trained(1, kBf16);
  const auto elsewhere = [&](const std::string& words) {
    return run_command(kWithoutBf16 + trainer_path() + " " + words);
  };
  const std::string own = "--debug.emulate_bf16 false ";
  const std::string predict =
      fmt::format("predict --input {} --output {}/p.csv ", experiment_.test().images, run);
  for (const std::string& command : {std::string("eval "), predict}) {
    expect_failed(elsewhere(command + own + "--model " + run), kExitConfig);
    succeeded(elsewhere(command + own + "--train.precision fp32 --model " + run));
  }
  const std::string exported = run + "/m.safetensors";
  succeeded(elsewhere("export --model " + run + " --format safetensors --output " + exported + " " + own));
  EXPECT_TRUE(read_file(exported) == read_file(run + "/model.safetensors"));
}

TEST_F(InBf16, PlanLogAndBenchNameIt) {
  const std::string run = experiment_.fresh_run();
  const std::string all = words(run, kBf16);
  const ProcessResult plan = run_trainer("plan " + all);
  expect_parts(plan.output, {"precision  ", " bf16\n"});
  expect_parts(run_command(kWithoutBf16 + trainer_path() + " " + all).output, {"precision bf16, emulated"});
  expect_parts(run_command(kWithoutBf16 + trainer_path() + " bench " + all).output,
               {"in bf16, emulated; limit: multiply-adds in fp32"});
}

}  // namespace
}  // namespace lockstep::test::precision_test
