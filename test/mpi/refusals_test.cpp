// The whole grid of what can be combined: each cell is refused by a row with its reason, or trains.
#include "lockstep/train/plan/refusals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

struct Cell {
  std::string name;
  Config config;
  int ranks = 1;
};

using Change = std::pair<std::string, std::function<void(Config&)>>;

// Every one of `changes` to every cell.
std::vector<Cell> times(const std::vector<Cell>& cells, const std::vector<Change>& changes) {
  std::vector<Cell> all;
  for (const Cell& cell : cells) {
    for (const auto& [name, change] : changes) {
      all.push_back(cell);
      all.back().name += " " + name;
      change(all.back().config);
    }
  }
  return all;
}

std::vector<Change> strategies() {
  std::vector<Change> all;
  for (const StrategyEntry& entry : strategy_catalog()) {
    const auto choose = [name = entry.name](Config& c) { c.distribute.strategy = name; };
    if (!entry.has_servers) {
      all.emplace_back(entry.name, choose);
      continue;
    }
    for (const ServerMode mode : {ServerMode::kSync, ServerMode::kBounded, ServerMode::kAsync}) {
      for (const Index servers : {1, 2}) {
        for (const Index backup : {0, 1}) {
          all.emplace_back(entry.name + " mode " + std::to_string(static_cast<int>(mode)) + ", " +
                               std::to_string(servers) + " servers, " + std::to_string(backup) + " backup",
                           [=](Config& c) {
                             choose(c);
                             c.distribute.mode = mode;
                             c.distribute.servers = servers;
                             c.distribute.backup_workers = backup;
                           });
        }
      }
    }
  }
  return all;
}

std::vector<Cell> grid() {
  Config base = test::tiny_config();
  base.data.synthetic.rows = 60;
  base.train.epochs = 1;
  base.train.replicas = 6;
  base.train.global_batch = 24;
  std::vector<Cell> cells = times({{"", base}}, strategies());
  cells = times(cells, {{"native", [](Config& c) { c.distribute.reduction = Reduction::kNative; }},
                        {"ordered", [](Config& c) { c.distribute.reduction = Reduction::kOrdered; }}});
  std::vector<Change> norms{{"no batch norm", [](Config&) {}}};
  norms.emplace_back("a split layer", [](Config& c) {
    c.model.layers = "dense(32) relu dense(128, split=rows) relu dense(3)";
  });
  for (const std::string mode : {"local", "averaged", "sync", "group(2)"}) {
    norms.emplace_back("batch norm " + mode, [mode](Config& c) {
      c.model.layers = "dense(9) batch_norm relu dense(3)";
      c.model.batch_norm = mode;
    });
  }
  cells = times(cells, norms);
  cells = times(cells,
                {{"fp32", [](Config&) {}}, {"bf16", [](Config& c) { c.distribute.compression = "bf16"; }}});
  // What is rare alone, once with everything before.
  cells = times(cells, {{"", [](Config&) {}},
                        {"5 replicas", [](Config& c) { c.train.replicas = 5; }},
                        {"a batch of 25", [](Config& c) { c.train.global_batch = 25; }},
                        {"ring", [](Config& c) { c.distribute.algorithm = "ring"; }},
                        {"no error feedback", [](Config& c) { c.distribute.error_feedback = false; }},
                        {"skip bad steps", [](Config& c) { c.train.on_nan = OnNan::kSkip; }},
                        {"an average", [](Config& c) { c.train.ema = 0.9; }},
                        {"2 stages", [](Config& c) { c.distribute.stages = 2; }},
                        {"2 stages, 2 threads",
                         [](Config& c) {
                           c.distribute.stages = 2;
                           c.train.threads = 2;
                         }},
                        {"4 rows", [](Config& c) { c.data.synthetic.rows = 4; }}});
  std::vector<Cell> all;
  for (Cell cell : cells) {
    for (cell.ranks = 1; cell.ranks <= 4; ++cell.ranks) all.push_back(cell);
  }
  return all;
}

// "" if it trains, else what it is refused with.
std::string refusal_of(const Cell& cell) {
  try {
    run_thread_ranks(cell.ranks, [&](Communicator& comm) {
      const test::TinyResult result = test::train_tiny(comm, cell.config);
      EXPECT_TRUE(std::isfinite(result.training.last_evaluation->loss));
    });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Rows that follow from one or two settings, whatever the others are: what makes each apply.
std::map<std::string, std::function<void(Combination&)>> single_rows() {
  return {
      {"train.per_replica_batch without train.replicas",
       [](Combination& c) { c.batch_follows_replicas = true; }},
      {"train.ema with train.swa_from", [](Combination& c) { c.two_averages = true; }},
      {"data.validation with data.validation_share", [](Combination& c) { c.two_validation_sets = true; }},
      {"data.validation_labels or data.validation_weights with a part of the training samples",
       [](Combination& c) { c.labels_beside_held_part = true; }},
      {"train.schedule plateau without a validation set", [](Combination& c) { c.follows_nothing = true; }},
      {"train.class_weights with a loss on numbers", [](Combination& c) { c.weighs_numbers = true; }},
      {"train.class_weights with several targets of yes or no",
       [](Combination& c) { c.weighs_several = true; }},
      {"data.fold with data.validation or data.validation_share",
       [](Combination& c) { c.fold_and_validation_set = true; }},
      {"eval.threshold by a measure without a validation set",
       [](Combination& c) { c.threshold_from_nowhere = true; }},
      {"eval.threshold with a model that does not say one yes or no",
       [](Combination& c) { c.threshold_of_others = true; }},
      {"eval.threshold with a hinge loss", [](Combination& c) { c.threshold_of_scores = true; }},
      {"train.calibrate without a validation set", [](Combination& c) { c.calibrates_on_nothing = true; }},
      {"train.calibrate with a loss that gives no probabilities",
       [](Combination& c) { c.calibrates_values = true; }},
      {"data.audit with train.tail drop, or with asynchronous workers",
       [](Combination& c) { c.audits = c.drops_tail = true; }},
      {"data.reshuffle global with a data.shard_order that is not shuffled",
       [](Combination& c) {
         c.reshuffle = Reshuffle::kGlobal;
         c.shard_order = ShardOrder::kContiguous;
       }},
      {"data.shard_order strided with streamed samples",
       [](Combination& c) {
         c.streamed = true;
         c.shard_order = ShardOrder::kStrided;
       }},
      {"layers with split=rows on several ranks with strategy zero1 and train.accumulate",
       [](Combination& c) {
         c.divides_layers = true;
         c.accumulate = 2;
       }},
      {"layers with split=rows on several ranks with strategy zero1 and optimizer adafactor or muon",
       [](Combination& c) { c.divides_layers = c.whole_tensors = true; }},
      {"layers with split=rows on several ranks with strategy zero1 and train.ema or train.swa_from",
       [](Combination& c) { c.divides_layers = c.averages = true; }},
      {"layers with split=rows on several ranks with strategy zero1 and tie",
       [](Combination& c) { c.split_layers_share = true; }},
      {"batch norm in groups of more replicas than there are",
       [](Combination& c) { c.largest_group = c.replicas + 1; }},
      {"batch norm of single values in each step",
       [](Combination& c) { c.single_values = "layer 1 with batch norm local"; }}};
}

TEST(Refusals, OfSingleSettingsApply) {
  DistOptions distribute;
  distribute.strategy = "allreduce";
  EXPECT_NO_THROW(refuse({.distribute = distribute, .replicas = 4, .batch = 8}));
  for (const auto& [name, change] : single_rows()) {
    SCOPED_TRACE(name);
    Combination combination{.distribute = distribute, .replicas = 4, .batch = 8};
    change(combination);
    try {
      refuse(combination);
      ADD_FAILURE() << "is not refused";
    } catch (const ConfigError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("refused: " + name + "; ")) << error.what();
    }
  }
  Combination asynchronous{.distribute = distribute, .world = 3, .servers = 1, .replicas = 2, .batch = 8};
  distribute.strategy = "parameter_server";
  distribute.mode = ServerMode::kAsync;
  EXPECT_NO_THROW(refuse(asynchronous));
  asynchronous.audits = true;
  EXPECT_THROW(refuse(asynchronous), ConfigError);
}

TEST(Refusals, EveryCombinationTrainsOrIsRefusedWithAReason) {
  std::set<std::string> used;
  int trained = 0;
  for (const Cell& cell : grid()) {
    SCOPED_TRACE(cell.name + " on " + std::to_string(cell.ranks) + " ranks");
    const std::string refusal = refusal_of(cell);
    if (refusal.empty()) {
      ++trained;
      continue;
    }
    bool found = false;
    for (const Refusal& row : refusals()) {
      if (refusal.find(row.combination) == std::string::npos) continue;
      EXPECT_NE(refusal.find(row.reason), std::string::npos);
      used.insert(row.combination);
      found = true;
    }
    EXPECT_TRUE(found) << refusal;
  }
  EXPECT_GT(trained, 100);
  for (const auto& [name, change] : single_rows()) used.insert(name);
  for (const Refusal& row : refusals()) EXPECT_TRUE(used.contains(row.combination)) << row.combination;
}

}  // namespace
}  // namespace lockstep
