// trainer plan --nodes: from what bench has measured to a forecast, and what it says about files that are no
// such report.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/small_experiment.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

// A report like those of bench, of the model of the small experiment.
nlohmann::json report() {
  const auto passes =
      parse_json<nlohmann::json>(R"([{"rows": 1, "seconds": 1e-5}, {"rows": 3, "seconds": 2e-5}])");
  const auto exchanges = parse_json<nlohmann::json>(R"([
    {"bytes": 64, "seconds": 1e-6, "message_seconds": 1e-6, "shared_seconds": 5e-7},
    {"bytes": 16384, "seconds": 6e-6, "message_seconds": 4e-6, "shared_seconds": 1e-6}])");
  return {{"ranks", 2},
          {"hosts", 1},
          {"cores", 2},
          {"parameters", 276},
          {"precision", "fp32"},
          {"rows", 3},
          {"machine", {{"cache_bandwidth", 1e11}}},
          {"passes", passes},
          {"exchanges", exchanges},
          {"step",
           {{"seconds", 1e-4},
            {"samples", 24},
            {"workers", 2},
            {"replicas", 8},
            {"threads", 1},
            {"accumulate", 1},
            {"stepped", 1.0},
            {"data", 0.1},
            {"forward", 0.3},
            {"backward", 0.4},
            {"optimizer", 0.1},
            {"waiting", 0.05}}}};
}

class Scale : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string file = experiment_.fresh_run() + ".json";
    write_file_atomically(file, text);
    return file;
  }
  ProcessResult plan(const std::string& file, const std::string& flags) {
    return run_trainer(fmt::format("plan --config {} --from {} {}", experiment_.config(extra_), file, flags));
  }
  void expect_refusal(const nlohmann::json& json, int exit_code, const std::string& said) {
    const ProcessResult result = plan(write(json.dump()), "--nodes 1 --ranks-per-node 2");
    EXPECT_EQ(result.exit_code, exit_code) << result.errors;
    EXPECT_NE(result.errors.find(said), std::string::npos) << said << " in:\n" << result.errors;
  }

  SmallExperiment experiment_;
  std::string extra_;
};

constexpr const char* kCluster =
    "--nodes 64 --ranks-per-node 32 --cores-per-node 32 --latency 2us --bandwidth 25Gbit";

TEST_F(Scale, ForetellsEveryStrategyAndAlgorithm) {
  const ProcessResult result = plan(write(report().dump()), kCluster);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  for (const std::string words :
       {"64 nodes of 32 ranks; between nodes 2.0 us and 25 Gbit/s", "weak scaling", "allreduce", "mpi",
        "ring", "rabenseifner", "hierarchical", "zero1", "central_storage", "parameter_server", "local_sgd",
        "2,048", "24,576", "fastest: ", "strong scaling", "2048 ranks but 8 replicas"}) {
    EXPECT_NE(result.output.find(words), std::string::npos) << words << " in:\n" << result.output;
  }
  EXPECT_EQ(result.output.find("shared  "), std::string::npos) << "64 nodes share no memory:\n"
                                                               << result.output;
  EXPECT_EQ(result.output.find("threads share each core"), std::string::npos) << result.output;
}

TEST_F(Scale, SaysWhichAlgorithmsOrderRulesOut) {
  const ProcessResult result =
      plan(write(report().dump()), fmt::format("{} --distribute.reduction ordered", kCluster));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.output.find("with ordered reduction not: ring, rabenseifner"), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("  ring "), std::string::npos) << result.output;
}

TEST_F(Scale, DividesTheGlobalBatchAsFarAsItGoes) {
  const ProcessResult result =
      plan(write(report().dump()), "--nodes 16 --latency 2us --bandwidth 25Gbit --distribute.algorithm ring");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.output.find("ends here: 16 ranks but 8 replicas"), std::string::npos) << result.output;
}

TEST_F(Scale, TakesTheModelAsAWhole) {
  const std::string bench = write(report().dump());
  const ProcessResult stages = plan(bench, "--nodes 1 --ranks-per-node 2 --distribute.stages 2");
  EXPECT_EQ(stages.exit_code, 2) << stages.output;
  EXPECT_NE(stages.errors.find("predicts the time of the model as a whole: give --distribute.stages 1"),
            std::string::npos)
      << stages.errors;
  const ProcessResult automatic = plan(bench, "--nodes 1 --ranks-per-node 2 --distribute.stages auto");
  EXPECT_EQ(automatic.exit_code, 0) << automatic.errors;
}

// The layer whose units ranks divide: its samples are sent, and not its weights.
TEST_F(Scale, NamesTheWayThatDividesLayers) {
  const std::string bench = write(report().dump());
  const auto zero1 = [&](const std::string& layer) {
    const ProcessResult result =
        plan(bench, fmt::format("--nodes 2 --ranks-per-node 2 --latency 2us --bandwidth 1Gbit --json - "
                                "--model.layers '{} relu dense(4)'",
                                layer));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const auto rows = parse_json<nlohmann::json>(result.output)["strong"]["ways"];
    const auto found = std::ranges::find_if(rows, [](const auto& row) { return row["strategy"] == "zero1"; });
    return *found;
  };
  const nlohmann::json divided = zero1("dense(16, split=rows)");
  const nlohmann::json whole = zero1("dense(16)");
  EXPECT_TRUE(divided["divides_layers"]);
  EXPECT_FALSE(whole["divides_layers"]);
  EXPECT_NE(divided["exchange"], whole["exchange"]);
}

TEST_F(Scale, SaysTheSameToMachines) {
  const std::string file = experiment_.fresh_run() + ".json";
  const ProcessResult result = plan(write(report().dump()), fmt::format("{} --json {}", kCluster, file));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto json = parse_json<nlohmann::json>(read_file(file));
  const auto& growth = json["weak"]["growth"];
  ASSERT_EQ(growth.size(), 7);
  EXPECT_EQ(growth.back()["nodes"], 64);
  EXPECT_EQ(growth.back()["ranks"], 2048);
  EXPECT_EQ(growth.back()["global_batch"], 2048 * 12);
  for (const auto& row : growth) {
    EXPECT_NEAR(row["compute"], growth.front()["compute"], 1e-9);
    EXPECT_NEAR(row["seconds"].get<double>() * row["samples_per_second"].get<double>(), row["global_batch"],
                1e-3);
  }
}

TEST_F(Scale, MoreBandwidthIsNotSlower) {
  const std::string bench = write(report().dump());
  double before = 1e9;
  for (const std::string bandwidth : {"1Gbit", "10Gbit", "12.5GB"}) {
    const ProcessResult result =
        plan(bench, fmt::format("--nodes 8 --latency 2us --bandwidth {} --json -", bandwidth));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    const double seconds = parse_json<nlohmann::json>(result.output)["weak"]["growth"].back()["seconds"];
    EXPECT_LT(seconds, before);
    before = seconds;
  }
}

TEST_F(Scale, RefusesWhatIsNoReport) {
  ProcessResult result = plan("/nonexistent/bench.json", "--nodes 1");
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  EXPECT_NE(result.errors.find("No such file"), std::string::npos) << result.errors;
  result = plan(write(report().dump().substr(0, 200)), "--nodes 1");
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  EXPECT_NE(result.errors.find("no JSON"), std::string::npos) << result.errors;

  nlohmann::json json = report();
  json.erase("passes");
  expect_refusal(json, 3, "key 'passes' not found");
  json = report();
  json["step"]["forward"] = "fast";
  expect_refusal(json, 3, "type must be number, but is string");
  json["step"]["forward"] = -1;
  expect_refusal(json, 3, "\"forward\" is -1, expected a number that is not negative");
  json = report();
  json["ranks"] = 0;
  expect_refusal(json, 3, "\"ranks\" is 0, expected a whole number above 0");
  json = report();
  json["passes"].erase(0);
  expect_refusal(json, 3, "\"passes\" is not a list of at least two");
  expect_refusal({1, 2}, 3, "expected what 'trainer bench --json' of this version writes");
  json = report();
  json["parameters"] = 5;
  expect_refusal(json, 2, "a model with 5 parameters, but the config's has 276");
  json["parameters"] = 276;
  json["precision"] = "bf16";
  expect_refusal(json, 2, "was measured in bf16, which is not the config's train.precision");
  json = report();
  for (auto& exchange : json["exchanges"]) exchange["message_seconds"] = exchange["shared_seconds"] = 0;
  expect_refusal(json, 2, "messages inside a node were not measured");
}

TEST_F(Scale, SaysWhatToRunFirst) {
  const ProcessResult result = run_trainer(
      fmt::format("plan --config {} --nodes 2 {}", experiment_.config(), "--latency 2us --bandwidth 1Gbit"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("trainer bench --config"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace lockstep::test
