#include "planned_nodes.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "quantity.h"

namespace lockstep {
namespace {

constexpr Index kMaxRanks = Index{1} << 20;  // the limit for all nodes together

Index parse_count(const FrontEnd& front, std::string_view flag, Index otherwise) {
  const std::optional<std::string> text = front.value(flag);
  if (!text) return otherwise;
  const Index count = ValueType<Index>::parse(*text).value_or(0);
  if (count >= 1 && count <= kMaxRanks) return count;
  throw ConfigError(
      fmt::format("--{}: expected a whole number from 1 to {}, found {}", flag, kMaxRanks, in_quotes(*text)));
}

// A number about the link between nodes; 0 on one node, which has no link.
template <class Parse>
double parse_link(const FrontEnd& front, std::string_view flag, Index nodes, const std::string& expected,
                  const Parse& parse) {
  const std::optional<std::string> text = front.value(flag);
  if (!text && nodes == 1) return 0;
  if (!text) {
    throw ConfigError(fmt::format("--{} is missing: with several --nodes, expected {}", flag, expected));
  }
  const std::optional<double> value = parse(*text);
  if (!value) throw ConfigError(fmt::format("--{}: expected {}, found {}", flag, expected, in_quotes(*text)));
  return *value;
}

void refuse_without_nodes(const FrontEnd& front) {
  for (const std::string_view flag :
       {"ranks-per-node", "cores-per-node", "latency", "bandwidth", "from", "json"}) {
    if (front.value(flag) && front.command() == "plan") {
      throw ConfigError(fmt::format("--{} of plan describes machines: add --nodes", flag));
    }
  }
}

}  // namespace

PlannedNodes parse_planned_nodes(const FrontEnd& front, const std::string& config_file) {
  if (!front.value("nodes")) {
    refuse_without_nodes(front);
    return {};
  }
  if (front.value("np")) throw ConfigError("--np and --nodes: give one of them");
  PlannedNodes planned;
  planned.nodes = parse_count(front, "nodes", 1);
  planned.ranks_per_node = parse_count(front, "ranks-per-node", 1);
  planned.cores = parse_count(front, "cores-per-node", 0);
  if (planned.ranks_per_node > kMaxRanks / planned.nodes) {
    throw ConfigError(fmt::format("--nodes {} --ranks-per-node {}: expected at most {} ranks in all",
                                  planned.nodes, planned.ranks_per_node, kMaxRanks));
  }
  planned.latency =
      parse_link(front, "latency", planned.nodes, "a time such as 500ns, 2us or 0.1ms", parse_seconds);
  planned.bandwidth = parse_link(front, "bandwidth", planned.nodes,
                                 "bits or bytes per second such as 25Gbit, 100Mbit or 3GB", parse_bandwidth);
  planned.bench = front.value("from").value_or("");
  if (planned.bench.empty()) {
    throw ConfigError(fmt::format(
        "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
        "--config {} --json bench.json' first and add --from bench.json",
        config_file));
  }
  return planned;
}

}  // namespace lockstep
