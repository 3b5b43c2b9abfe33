// The ways to run a random experiment.
#include "lockstep/distributed/strategies/strategy.h"
#include "support/random_experiment.h"

namespace lockstep::test {

std::vector<Index> RandomExperiment::workers() const {
  std::vector<Index> counts;
  for (const Index count : {1, 2, 3}) {
    const bool even = replicas_ % count == 0;
    if (count <= replicas_ && (even || kind_ != Kind::kAlone)) counts.push_back(count);
  }
  if (kind_ == Kind::kAlone && !in_steps_) return {counts.back()};
  return counts;
}

RandomExperiment::Way RandomExperiment::draw_way(Dice& dice, Index workers) const {
  Way way{.workers = workers, .servers = 0, .flags = ""};
  // Two ranks may have a half of the model each, if it has so many layers that it can be cut.
  constexpr Index kEnough = 2;
  const bool meet = kind_ == Kind::kOrdered || kind_ == Kind::kNative;
  const bool stages =
      meet && !lossy_ && workers == 2 && spaces_between_layers_ >= kEnough && dice.chance(0.4);
  const Index max_threads = stages ? 1 : replicas_ / workers;
  bool one_node = false;
  way.flags =
      fmt::format("--train.threads {} --comm.verify_every {}", dice.whole(1, std::min<Index>(3, max_threads)),
                  dice.one_of({"0", "1", "3", "1000"}));
  if (dice.chance(0.6)) way.flags += fmt::format(" --data.prefetch {}", dice.one_of({"0", "1", "5"}));
  if (kind_ == Kind::kAlone) way.servers = dice.whole(1, 2);
  if (stages) way.flags += " --distribute.stages 2 --distribute.schedule gpipe";
  if (meet) {
    std::vector<std::string> names{"auto"};
    for (const StrategyEntry& entry : strategy_catalog()) {
      if (entry.promises.same_bits && !(stages && entry.has_servers)) names.push_back(entry.name);
    }
    const std::string name = dice.one_of(names);
    way.flags += " --distribute.strategy " + name;
    if (name != "auto" && strategy_entry(name).has_servers) way.servers = dice.whole(1, 2);
    if (name == "allreduce" && !lossy_) {
      std::vector<std::string> algorithms{"auto", "mpi", "shared", "hierarchical"};
      if (kind_ == Kind::kNative) algorithms.insert(algorithms.end(), {"ring", "rabenseifner"});
      const std::string algorithm = dice.one_of(algorithms);
      one_node = algorithm == "shared" || algorithm == "hierarchical";
      way.flags += " --distribute.algorithm " + algorithm;
      if (algorithm == "auto" && dice.chance(0.8)) way.flags += " --distribute.calibrate false";
    }
    if (dice.chance(0.5)) way.flags += " --distribute.bucket_kib 1";
  }
  if (way.servers > 0) way.flags += fmt::format(" --distribute.servers {}", way.servers);
  if (!one_node && dice.chance(0.25))
    way.flags += fmt::format(" --debug.ranks_per_node {}", dice.whole(1, 2));
  return way;
}

}  // namespace lockstep::test
