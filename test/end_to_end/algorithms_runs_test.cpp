// Exchange algorithms from the executable: what a run says, leaves behind, and refuses.
#include <regex>

#include "lockstep/distributed/exchange/algorithm.h"
#include "support/trainer_runs.h"

namespace lockstep::test::algorithms_runs_test {
namespace {

using Json = nlohmann::json;

class AlgorithmRuns : public SmallRuns {
 protected:
  Json train(const std::string& flags) { return summarised(4, flags); }
  std::string model() const { return read_file(run_ + "/model.safetensors"); }
};

TEST_F(AlgorithmRuns, EachTrainsToTheSameLossAndIsNamed) {
  const double expected = train("--distribute.algorithm mpi")["evaluation"]["loss"];
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    const std::string nodes = entry.name == "hierarchical" ? " --debug.ranks_per_node 2" : "";
    const Json summary = train("--distribute.algorithm " + entry.name + " --distribute.bucket_kib 1" + nodes);
    EXPECT_EQ(summary["algorithm"], entry.name);
    EXPECT_NEAR(summary["evaluation"]["loss"].get<double>(), expected, 1e-4) << entry.name;
    expect_parts(output_, {"exchange algorithm: " + entry.name});
  }
}

TEST_F(AlgorithmRuns, OrderedRunsLeaveTheSameBytes) {
  train("--distribute.reduction ordered --distribute.algorithm mpi");
  const std::string expected = model();
  for (const char* flags : {"shared", "hierarchical --debug.ranks_per_node 2", "auto",
                            "auto --distribute.calibrate false --debug.ranks_per_node 3"}) {
    train(std::string("--distribute.reduction ordered --distribute.algorithm ") + flags);
    EXPECT_TRUE(model() == expected) << flags;
  }
}

TEST_F(AlgorithmRuns, TheChoiceIsSaid) {
  const Json measured = train("--distribute.strategy allreduce");
  expect_parts(output_,
               {"exchange algorithm: " + measured["algorithm"].get<std::string>(), "by calibration"});
  EXPECT_EQ(train("--distribute.calibrate false")["algorithm"], "shared");
  expect_parts(output_, {"exchange algorithm: shared, by rule"});
  EXPECT_FALSE(train("--distribute.strategy zero1").contains("algorithm"));
}

TEST_F(AlgorithmRuns, TheStrategyFollowsTheNodesAndTheKeysGiven) {
  const auto expect_strategy = [&](const std::string& flags, const std::string& strategy) {
    train(flags + " --run.plan full");
    EXPECT_TRUE(std::regex_search(output_, std::regex("\nstrategy +" + strategy + "\n"))) << output_;
  };
  expect_strategy("", "central_storage");
  expect_strategy("--debug.ranks_per_node 1", "allreduce");
  expect_strategy("--distribute.bucket_kib 64", "allreduce");
  expect_strategy("--distribute.strategy zero1", "zero1");
}

TEST_F(AlgorithmRuns, WhatCannotBeIsRefused) {
  expect_refused(4, "--distribute.algorithm shared --debug.ranks_per_node 2",
                 {"distribute.algorithm shared", "2 nodes", "hierarchical"});
  expect_refused(4, "--distribute.algorithm hierarchical --debug.ranks_per_node 1",
                 {"distribute.algorithm hierarchical", "no two ranks share a node"});
  expect_refused(2, "--distribute.algorithm ring --distribute.reduction ordered",
                 {"ordered reduction with algorithm ring", "the same bits"});
  for (const char* strategy : {"zero1", "central_storage", "parameter_server"}) {
    expect_refused(1, fmt::format("--distribute.algorithm mpi --distribute.strategy {}", strategy),
                   {"distribute.algorithm has no effect without"});
  }
  expect_refused(1, "--distribute.algorithm mpi --distribute.compression bf16",
                 {"distribute.algorithm has no effect without"});
  expect_refused(1, "--distribute.algorithm mpi --distribute.calibrate false",
                 {"distribute.calibrate has no effect without distribute.algorithm = \"auto\""});
}

}  // namespace
}  // namespace lockstep::test::algorithms_runs_test
