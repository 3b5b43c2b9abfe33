// The whole grid of what can be combined: each cell is refused by a row with its reason, or trains.
#include "lockstep/train/plan/refusals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "app/setup/experiment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
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

// Refusals that the grid does not have, whatever the other settings are: what makes each apply.
using Conflict = std::function<void(Config&, Combination&)>;

std::map<std::string, Conflict> conflicts_of_runs() {
  const std::string split = "layers with split=rows on several ranks with strategy zero1 and ";
  return {
      {"data.audit with train.tail drop, or with asynchronous workers",
       [](Config& c, Combination&) {
         c.data.audit = true;
         c.train.tail = Tail::kDrop;
       }},
      {"data.reshuffle global with a data.shard_order that is not shuffled",
       [](Config& c, Combination&) {
         c.data.reshuffle = Reshuffle::kGlobal;
         c.data.shard_order = ShardOrder::kContiguous;
       }},
      {"data.shard_order strided with streamed samples",
       [](Config& c, Combination& run) {
         run.streamed = true;
         c.data.shard_order = ShardOrder::kStrided;
       }},
      {split + "train.accumulate",
       [](Config& c, Combination& run) {
         run.divides_layers = true;
         c.train.accumulate = 2;
       }},
      {split + "optimizer adafactor or muon",
       [](Config&, Combination& run) { run.divides_layers = run.whole_tensors = true; }},
      {split + "train.ema or train.swa_from",
       [](Config& c, Combination& run) {
         run.divides_layers = true;
         c.train.swa_from = "1 epoch";
       }},
      {split + "tie", [](Config&, Combination& run) { run.divides_layers = run.split_layers_share = true; }},
      {"batch norm in groups of more replicas than there are",
       [](Config&, Combination& run) { run.largest_group = run.replicas + 1; }},
      {"batch norm of single values in each step",
       [](Config&, Combination& run) { run.single_values = "layer 1 with batch norm local"; }}};
}

// Keys of a config, and their values as TOML has them.
using Keys = std::map<std::string, std::string>;

// Refusals that are found before there is a run: the keys that make each apply.
std::map<std::string, Keys> conflicts_of_configs() {
  return {
      {"train.per_replica_batch without train.replicas",
       {{"train.per_replica_batch", "4"}, {"train.global_batch", ""}}},
      {"train.ema with train.swa_from", {{"train.ema", "0.9"}, {"train.swa_from", "'1 epoch'"}}},
      {"data.validation with data.validation_share",
       {{"data.validation", "'stratified(0.1)'"}, {"data.validation_share", "0.1"}}},
      {"data.validation_labels or data.validation_weights with a part of the training samples",
       {{"data.format", "'numpy'"},
        {"data.label", ""},
        {"data.validation", "'stratified(0.1)'"},
        {"data.validation_labels", "'l.npy'"}}},
      {"train.schedule plateau without a validation set", {{"train.schedule", "'plateau'"}}},
      {"train.class_weights with a loss on numbers",
       {{"train.class_weights", "['balanced']"},
        {"train.loss", "'mean_squared_error'"},
        {"data.label", "['x']"},
        {"model.layers", "'dense(1)'"}}},
      {"train.class_weights with several targets of yes or no",
       {{"train.class_weights", "['balanced']"},
        {"train.loss", "'binary_cross_entropy'"},
        {"data.label", "['u', 'v']"},
        {"model.layers", "'dense(2)'"}}},
      {"data.fold with data.validation or data.validation_share",
       {{"data.fold", "1"}, {"data.folds", "3"}, {"data.validation_share", "0.1"}}},
      {"eval.threshold by a measure without a validation set", {{"eval.threshold", "'f1'"}}},
      {"eval.threshold with a model that does not say one yes or no", {{"eval.threshold", "0.3"}}},
      {"eval.threshold with a hinge loss", {{"eval.threshold", "0.3"}, {"train.loss", "'multiclass_hinge'"}}},
      {"train.calibrate without a validation set", {{"train.calibrate", "'temperature'"}}},
      {"train.calibrate with a loss that gives no probabilities",
       {{"train.calibrate", "'temperature'"},
        {"train.loss", "'multiclass_hinge'"},
        {"data.validation_share", "0.1"}}}};
}

Combination combination_of(const Config& config) {
  return {
      .distribute = config.distribute, .train = config.train, .data = config.data, .replicas = 4, .batch = 8};
}

TEST(Refusals, OfRunsApply) {
  Config config;
  config.distribute.strategy = "allreduce";
  EXPECT_NO_THROW(refuse(combination_of(config)));
  for (const auto& [name, make] : conflicts_of_runs()) {
    Config changed = config;
    Combination run = combination_of(changed);
    make(changed, run);
    test::expect_parts(test::error_text<ConfigError>([&run] { refuse(run); }), {"refused: " + name + "; "});
  }
  config.distribute.strategy = "parameter_server";
  config.distribute.mode = ServerMode::kAsync;
  Combination run = combination_of(config);
  run.world = 3;
  run.servers = 1;
  EXPECT_NO_THROW(refuse(run));
  config.data.audit = true;
  EXPECT_THROW(refuse(run), ConfigError);
}

TEST(Refusals, OfConfigsApply) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "t.csv";
  write_file_atomically(file, "x,u,v,kind\n1,0,1,a\n2,1,0,b\n3,1,1,c\n4,0,0,a\n5,1,0,b\n6,0,1,c\n");
  const auto make = [&file](Keys keys) {
    keys.merge(Keys{{"data.format", "'csv'"},
                    {"data.train", "'" + file.string() + "'"},
                    {"data.label", "['kind']"},
                    {"model.layers", "'dense(3)'"},
                    {"train.epochs", "2"},
                    {"train.global_batch", "3"}});
    std::string text;
    for (const auto& [key, value] : keys) {
      if (!value.empty()) text.append(key).append(" = ").append(value).append("\n");
    }
    make_experiment(load_training_config({}, {"c.toml", text}, {}), alone());
  };
  EXPECT_NO_THROW(make({}));
  for (const auto& [name, keys] : conflicts_of_configs()) {
    test::expect_parts(test::error_text<ConfigError>([&] { make(keys); }), {"refused: " + name + "; "});
  }
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
      if (refusal.find("refused: " + row.name + ";") == std::string::npos) continue;
      EXPECT_NE(refusal.find(row.reason), std::string::npos);
      used.insert(row.name);
      found = true;
    }
    EXPECT_TRUE(found) << refusal;
  }
  EXPECT_GT(trained, 100);
  for (const auto& [name, make] : conflicts_of_runs()) used.insert(name);
  for (const auto& [name, lines] : conflicts_of_configs()) used.insert(name);
  for (const Refusal& row : refusals()) {
    EXPECT_TRUE(used.contains(row.name)) << row.name;
    EXPECT_FALSE(row.reason.empty() || row.reason.ends_with('.')) << row.name;
  }
}

}  // namespace
}  // namespace lockstep
