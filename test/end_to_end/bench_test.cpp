// trainer bench: every figure is there, for people and for machines; and the share of the exchange that is
// hidden, with and without the helper thread.
#include "support/trainer_runs.h"

namespace lockstep::test::bench_test {
namespace {

TEST(Bench, MeasuresMachineModelExchangeAndStep) {
  const SmallExperiment experiment;
  const std::string file = experiment.fresh_run() + ".json";
  const ProcessResult result = succeed(
      2,
      fmt::format("bench --config {} --json {} --distribute.reduction ordered", experiment.config(), file));
  for (const std::string word :
       {"multiply-adds", "copy in memory", "cache line", "layer 0", "MPI_Allreduce", "central_storage",
        "training step", "waiting", "GB/s", "with ordered reduction not: ring, rabenseifner"}) {
    EXPECT_NE(result.output.find(word), std::string::npos) << word << " in:\n" << result.output;
  }
  const auto json = parse_json<nlohmann::json>(read_file(file));
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_GT(json["machine"]["flops"], 1e9);
  EXPECT_GT(json["machine"]["memory_bandwidth"], 1e8);
  EXPECT_GT(json["cache_line_seconds"], 1e-9);
  EXPECT_LT(json["cache_line_seconds"], 1);
  for (const auto& op : json["ops"]) {
    EXPECT_GT(op["forward_seconds"], 0) << op;
    EXPECT_LT(op["forward_flops"].get<double>() / op["forward_seconds"].get<double>(),
              1.1 * json["machine"]["flops"].get<double>())
        << "faster than the limit: " << op;
  }
  EXPECT_GE(json["cores"], 1);
  EXPECT_EQ(json["exchanges"].size(), 7);
  EXPECT_LT(json["exchanges"].front()["seconds"], json["exchanges"].back()["seconds"]);
  std::set<std::string> algorithms;
  for (const auto& rate : json["algorithms"]) {
    algorithms.insert(rate["name"]);
    EXPECT_GT(rate["seconds"], 0) << rate;
  }
  EXPECT_EQ(algorithms, (std::set<std::string>{"mpi", "shared", "hierarchical"}));
  std::set<std::string> updates;
  for (const auto& rate : json["updates"]) {
    updates.insert(rate["name"]);
    EXPECT_GT(rate["seconds"], 0) << rate;
  }
  EXPECT_EQ(updates,
            (std::set<std::string>{"MPI_Allreduce, then the step", "allreduce", "zero1", "central_storage"}));
  const auto& step = json["step"];
  EXPECT_EQ(step["stepped"], 0.5) << "two ranks share what central_storage steps on";
  EXPECT_GE(step["optimizer_bytes"], 0.5 * 3 * 4 * json["parameters"].get<double>());
  EXPECT_EQ(step["sent_bytes"], 0) << "nothing in shared memory";
  double parts = 0;
  for (const char* part : {"data", "forward", "backward", "optimizer", "exchange", "waiting"}) {
    EXPECT_GE(step[part], 0) << part;
    parts += step[part].get<double>();
  }
  EXPECT_NEAR(parts, 1, 1e-6);
  EXPECT_NEAR(step["samples_per_second"].get<double>() * step["seconds"].get<double>(),
              step["samples"].get<double>(), 1e-6 * step["samples"].get<double>() + 1e-9);
}

TEST(Bench, PretendsNodesThroughout) {
  const SmallExperiment experiment;
  const std::string file = experiment.fresh_run() + ".json";
  succeed(2, fmt::format("bench --config {} --json {} --distribute.reduction native --debug.ranks_per_node 1",
                         experiment.config(), file));
  const auto json = parse_json<nlohmann::json>(read_file(file));
  std::set<std::string> algorithms;
  for (const auto& rate : json["algorithms"]) algorithms.insert(rate["name"]);
  EXPECT_EQ(algorithms, (std::set<std::string>{"mpi", "ring", "rabenseifner"}));
  EXPECT_EQ(json["step"]["stepped"], 1);
  EXPECT_GT(json["step"]["sent_bytes"], 0);
}

TEST(Bench, NeedsAConfig) {
  expect_failed(run_trainer(1, "bench"), 2, {"--config is missing"});
}

using Json = nlohmann::json;

class Overlap : public SmallRuns {
 protected:
  // The summary of a run, long enough for the exchange to be measured alone, of a model of several buckets.
  Json train(const std::string& flags) {
    return summarised(2, "--train.steps 40 --model.layers 'dense(300) relu dense(4)' " + flags);
  }
};

TEST_F(Overlap, TheHelperThreadChangesNoBits) {
  for (const std::string strategy : {"allreduce", "zero1"}) {
    const std::string flags =
        "--distribute.bucket_kib 1 --distribute.reduction ordered --distribute.strategy " + strategy;
    train(flags);
    const std::string expected = read_file(run_ + "/model.safetensors");
    train(flags + " --distribute.progress_thread true");
    EXPECT_TRUE(read_file(run_ + "/model.safetensors") == expected) << strategy;
  }
}

TEST_F(Overlap, TheHelperThreadIsRefusedWhereNothingLeavesEarly) {
  for (const std::string strategy : {"central_storage", "local_sgd"}) {
    expect_refused(2, "--distribute.progress_thread true --distribute.strategy " + strategy,
                   {"distribute.progress_thread has no effect"});
  }
}

TEST_F(Overlap, TheHiddenShareIsToldWhereBucketsLeaveEarly) {
  const Json time = train("--distribute.bucket_kib 1")["time"];
  ASSERT_TRUE(time.contains("hidden"));
  EXPECT_GE(time["hidden"].get<double>(), 0);
  EXPECT_LT(time["hidden"].get<double>(), 1);
  expect_parts(output_, {"hidden: "});
  EXPECT_FALSE(train("--distribute.bucket_kib 100000")["time"].contains("hidden"));
  EXPECT_FALSE(
      train("--distribute.bucket_kib 1 --distribute.strategy central_storage")["time"].contains("hidden"));
}

}  // namespace
}  // namespace lockstep::test::bench_test
