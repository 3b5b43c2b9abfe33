// The flags of single commands, as the commands read them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

CommandLine parse(const Arguments& arguments) {
  return parse_command_line(arguments, known_options());
}

// The error of a command about its flags.
std::string error_of(const Arguments& arguments) {
  try {
    const CommandLine line = parse(arguments);
    if (line.command == "predict") read_predict_request(line);
    if (line.command == "importance") read_importance_flags(line);
    if (line.command == "plan") function_of(line).alone(line);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CommandFlags, SayWhatOfAPredictionIsWanted) {
  const auto words = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", "--model", "a", "--input", "-", "--output", "c.csv"});
    return more;
  };
  const PredictRequest none = read_predict_request(parse(words({})));
  EXPECT_FALSE(none.keep || none.probabilities || none.top > 0 || none.threshold);
  const PredictRequest some =
      read_predict_request(parse(words({"--keep", "id,name", "--threshold", "0.25"})));
  EXPECT_EQ(some.keep, "id,name");
  EXPECT_EQ(some.threshold, 0.25);
  EXPECT_EQ(read_predict_request(parse(words({"--top", "3", "--format", "jsonl"}))).top, 3);
  EXPECT_TRUE(read_predict_request(parse(words({"--proba"}))).probabilities);
  for (const char* bad : {"1.5", "x", "nan"}) {
    EXPECT_EQ(error_of(words({"--threshold", bad})),
              fmt::format("--threshold: expected a probability from 0 to 1, found '{}'", bad));
  }
  EXPECT_EQ(error_of(words({"--top", "0"})), "--top: expected a number of classes, 1 or more, found '0'");
  EXPECT_NE(error_of(words({"--top", "2", "--proba"})).find("give one of them"), std::string::npos);
  EXPECT_NE(error_of(words({"--top", "2", "--threshold", "0.5"})).find("give one of them"),
            std::string::npos);
}

TEST(CommandFlags, SayWhatIsAskedOfColumns) {
  const ImportanceFlags flags =
      read_importance_flags(parse({"importance", "--model", "a", "--repeats", "3", "--metric", "auc"}));
  EXPECT_EQ(flags.metric, "auc");
  EXPECT_EQ(flags.repeats, 3);
  EXPECT_EQ(read_importance_flags(parse({"importance", "--model", "a", "--partial", "age"})).points, 20);
  EXPECT_EQ(error_of({"importance", "--model", "a", "--repeats", "0"}),
            "--repeats: expected a whole number from 1 to 1000, found '0'");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--points", "9"}),
            "--points belongs to --partial COLUMN: name the column, or leave it out");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--partial", "age", "--metric", "auc"}),
            "--metric has no effect with --partial: leave out one");
}

TEST(CommandFlags, NameTheNodesOfPlan) {
  const PlannedNodes planned = read_planned_nodes(
      parse({"plan", "--config", "a", "--nodes", "64", "--ranks-per-node", "32", "--cores-per-node", "48",
             "--latency", "2us", "--bandwidth", "25Gbit", "--from", "b.json"}));
  EXPECT_EQ(planned.nodes, 64);
  EXPECT_EQ(planned.ranks_per_node, 32);
  EXPECT_EQ(planned.cores, 48);
  EXPECT_DOUBLE_EQ(planned.latency, 2e-6);
  EXPECT_DOUBLE_EQ(planned.bandwidth, 25e9 / 8);
  EXPECT_EQ(planned.bench, "b.json");
  EXPECT_EQ(read_planned_nodes(parse({"plan", "--config", "a"})).nodes, 0);
  EXPECT_EQ(
      read_planned_nodes(parse({"plan", "--config", "a", "--nodes", "1", "--from", "b"})).ranks_per_node, 1);
}

TEST(CommandFlags, OfPlanAreChecked) {
  const auto error = [](const Arguments& flags) {
    Arguments arguments{"plan", "--config", "a", "--from", "b"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return error_of(arguments);
  };
  EXPECT_EQ(error({"--nodes", "0"}), "--nodes: expected a whole number from 1 to 1048576, found '0'");
  EXPECT_EQ(error({"--nodes", "2", "--ranks-per-node", "x"}),
            "--ranks-per-node: expected a whole number from 1 to 1048576, found 'x'");
  EXPECT_EQ(error({"--nodes", "65536", "--ranks-per-node", "32"}),
            "--nodes 65536 --ranks-per-node 32: expected at most 1048576 ranks in all");
  EXPECT_EQ(error({"--nodes", "2", "--bandwidth", "1Gbit"}),
            "--latency is missing: with several --nodes, expected a time such as 500ns, 2us or 0.1ms");
  EXPECT_EQ(error({"--nodes", "2", "--bandwidth", "1Gbit", "--latency", "2"}),
            "--latency: expected a time such as 500ns, 2us or 0.1ms, found '2'");
  EXPECT_EQ(error({"--nodes", "2", "--latency", "2us", "--bandwidth", "25"}),
            "--bandwidth: expected bits or bytes per second such as 25Gbit, 100Mbit or 3GB, found '25'");
  EXPECT_EQ(error({"--nodes", "2", "--np", "2"}), "--np and --nodes: give one of them");
  EXPECT_EQ(error({}), "--from of plan describes machines: add --nodes");
  EXPECT_EQ(
      error_of({"plan", "--config", "a", "--nodes", "1"}),
      "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
      "--config a --json bench.json' first and add --from bench.json");
}

TEST(CommandFlags, NameWorldSizes) {
  for (const std::string np : {"x", "1,", ",1", "1,,2", "0", "-1", "1.5", "1 2"}) {
    EXPECT_EQ(error_of({"plan", "--config", "a", "--np", np}),
              "--np: expected numbers of ranks from 1 to 1048576, such as 1,2,4,8, found '" + np + "'");
  }
}

// One of two nodes with this link; nothing if that is refused.
std::optional<PlannedNodes> link(const std::string& latency, const std::string& bandwidth) {
  try {
    return read_planned_nodes(parse({"plan", "--config", "a", "--nodes", "2", "--from", "b", "--latency",
                                     latency, "--bandwidth", bandwidth}));
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

TEST(CommandFlags, TakeTimes) {
  const auto parse_seconds = [](const std::string& text) {
    const auto found = link(text, "1Gbit");
    return found ? std::optional(found->latency) : std::nullopt;
  };
  EXPECT_DOUBLE_EQ(*parse_seconds("2us"), 2e-6);
  EXPECT_DOUBLE_EQ(*parse_seconds("500ns"), 5e-7);
  EXPECT_DOUBLE_EQ(*parse_seconds("0.1ms"), 1e-4);
  EXPECT_DOUBLE_EQ(*parse_seconds("1s"), 1);
  EXPECT_DOUBLE_EQ(*parse_seconds("0us"), 0);
  for (const char* text : {"", "2", "us", "2 us", "-1us", "2US", "2m", "nan us", "infs", "2us2"}) {
    EXPECT_FALSE(parse_seconds(text)) << text;
  }
}

TEST(CommandFlags, TakeBandwidths) {
  const auto parse_bandwidth = [](const std::string& text) {
    const auto found = link("1us", text);
    return found ? std::optional(found->bandwidth) : std::nullopt;
  };
  EXPECT_DOUBLE_EQ(*parse_bandwidth("25Gbit"), 25e9 / 8);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("25Gbit/s"), 25e9 / 8);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("100Mbit"), 1.25e7);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("1.5GB"), 1.5e9);
  EXPECT_DOUBLE_EQ(*parse_bandwidth("300MB/s"), 3e8);
  for (const char* text : {"", "25", "0Gbit", "-1Gbit", "25G", "25gbit", "Gbit", "25Gbit/h", "25us"}) {
    EXPECT_FALSE(parse_bandwidth(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep
