// The whole grid of what can be combined: each cell is refused by a row with its reason, or trains.
#include "lockstep/train/plan/run_plan.h"

#include "app/setup/experiment.h"
#include "app/setup/run_config.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/case_files.h"
#include "support/error_text.h"
#include "support/planned_run.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::refusals_test {
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
  Config base =
      test::tiny_config("data.synthetic_rows=60; train.epochs=1; train.replicas=6; train.global_batch=24");
  std::vector<Cell> cells = times({{"", base}}, strategies());
  cells = times(cells, {{"native", test::keys("distribute.reduction=native")},
                        {"ordered", test::keys("distribute.reduction=ordered")}});
  std::vector<Change> norms{{"no batch norm", [](Config&) {}}};
  norms.emplace_back("a split layer",
                     test::keys("model.layers=dense(32) relu dense(128, split=rows) relu dense(3)"));
  for (const std::string mode : {"local", "averaged", "sync", "group(2)"})
    norms.emplace_back(
        "batch norm " + mode,
        test::keys("model.layers=dense(9) batch_norm relu dense(3); model.batch_norm=" + mode));
  cells = times(cells, norms);
  cells = times(cells, {{"fp32", [](Config&) {}}, {"bf16", test::keys("distribute.compression=bf16")}});
  // What is rare alone, once with everything before.
  cells = times(cells, {{"", [](Config&) {}},
                        {"5 replicas", test::keys("train.replicas=5")},
                        {"a batch of 25", test::keys("train.global_batch=25")},
                        {"ring", test::keys("distribute.algorithm=ring")},
                        {"no error feedback", test::keys("distribute.error_feedback=false")},
                        {"skip bad steps", test::keys("train.on_nan=skip")},
                        {"an average", test::keys("train.ema=0.9")},
                        {"2 stages", test::keys("distribute.stages=2")},
                        {"2 stages, 2 threads", test::keys("distribute.stages=2; train.threads=2")},
                        {"4 rows", test::keys("data.synthetic_rows=4")}});
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
      EXPECT_TRUE(std::isfinite(result.training.evaluation()->loss));
    });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Refusals that the grid does not have: a run that each applies to.
std::vector<std::pair<std::string, test::Given>> conflicts_of_runs() {
  std::vector<std::pair<std::string, test::Given>> runs;
  const auto add = [&](const std::string& name, const std::string& layers = "dense(64) relu dense(10)") {
    runs.emplace_back(name, test::typical(layers));
    return &runs.back().second;
  };
  test::Given* run = add("data.audit with train.tail drop, or with asynchronous workers");
  run->data.audit = true;
  run->train.tail = Tail::kDrop;
  run = add("data.reshuffle batch without one batch of all replicas");
  run->data.reshuffle = Reshuffle::kBatch;
  run->data.mode = DataMode::kFull;
  run = add("data.reshuffle global or batch with a data.shard_order that is not shuffled");
  run->data.reshuffle = Reshuffle::kGlobal;
  run->data.shard_order = ShardOrder::kContiguous;
  run = add("data.shard_order strided with streamed samples");
  run->streamed = std::make_shared<const std::vector<Chunk>>(1);
  run->data.shard_order = ShardOrder::kStrided;
  run = add("data.bucket_by_length without data.train_lengths");
  run->data.bucket_by_length = 10;
  run = add("data.bucket_by_length with streamed samples");
  run->has_lengths = true;
  run->streamed = std::make_shared<const std::vector<Chunk>>(1);
  run->data.bucket_by_length = 10;
  add("batch norm in groups of more replicas than there are",
      "dense(64) batch_norm(mode=group(65)) relu dense(10)");
  run = add("batch norm of single values in each step", "dense(64) batch_norm(mode=local) relu dense(10)");
  run->train.global_batch = run->train.replicas;
  const auto add_split = [&](const std::string& with, const std::string& rest = "dense(10)") {
    test::Given* given = add("layers with split=rows on several ranks with strategy zero1 and " + with,
                             "dense(100, split=rows) relu " + rest);
    given->distribute.strategy = "zero1";
    return given;
  };
  add_split("train.accumulate")->train.accumulate = 2;
  run = add_split("optimizer adafactor or muon");
  const auto muon = find_entry(optimizer_catalog(), "optimizer", "muon").make({});
  run->optimizer = OptimizerMemory(*muon, run->model.layout());
  add_split("train.ema or train.swa_from")->train.swa_from = "1 epoch";
  add_split("tie", "dense(100, tie=0) relu dense(10)");
  return runs;
}

// Lines of a TOML config, one behind the other; a later key replaces an earlier one, and `key =` takes it
// out.
using Lines = std::string;

// A config of windows of time, but for these keys.
Lines windows(const Lines& lines) {
  return "data.window = 1; data.horizon = 1; data.time = 'x'; data.numeric = ['u']; data.label = ['u']; "
         "model.layers = 'dense(1)'; " +
         lines;
}

// A config of a text, but for these keys.
Lines text(const Lines& lines) {
  return "data.format = 'text'; data.label =; data.window = 2; " + lines;
}

// Refusals that are found before there is a run: the keys that make each apply.
std::map<std::string, Lines> conflicts_of_configs() {
  const Lines numbers = "train.loss = 'mean_squared_error'; data.label = ['x']; model.layers = 'dense(1)'";
  return {
      {"train.per_replica_batch without train.replicas", "train.per_replica_batch = 4; train.global_batch ="},
      {"train.ema with train.swa_from", "train.ema = 0.9; train.swa_from = '1 epoch'"},
      {"data.validation_labels or data.validation_weights with a part of the training samples",
       "data.format = 'numpy'; data.label =; data.validation = 'stratified(0.1)'; data.validation_labels = "
       "'l.npy'"},
      {"train.schedule plateau without a validation set", "train.schedule = 'plateau'"},
      {"train.class_weights with a loss on numbers", "train.class_weights = ['balanced']; " + numbers},
      {"train.class_weights with several targets of yes or no",
       "train.class_weights = ['balanced']; train.loss = 'binary_cross_entropy'; data.label = ['u', 'v']; "
       "model.layers = 'dense(2)'"},
      {"eval.threshold by a measure without a validation set", "eval.threshold = 'f1'"},
      {"data.test with data.test_part", "data.test = 't.csv'; data.test_part = 'share(0.1)'"},
      {"data.window without data.time or data.horizon", "data.window = 1"},
      {"data.window with data.memory stream", windows("data.memory = 'stream'")},
      {"data.window with a loss that does not learn numbers", windows("model.layers = 'dense(2)'")},
      {"data.window_scale with a loss whose outputs are logarithms",
       windows("data.window_scale = 'last'; train.loss = 'poisson'")},
      {"data.tokens ids with a text", text("data.tokens = 'ids'")},
      {"data.record with tokens", text("data.format = 'numpy'; data.tokens = 'ids'; data.record = 'row'")},
      {"train.ignore_label without a class at each position", "train.ignore_label = '5'"},
      {"data.audit with data.draw anywhere", text("data.draw = 'anywhere'; data.audit = true")},
      {"data.memory stream with tokens", text("data.memory = 'stream'")},
      {"data.augment with tokens", text("data.augment = 'flip'")},
      {"data.mean or data.std with tokens", text("data.mean = 0.5")},
      {"report.sample without a text", "report.sample = 'x'"},
      {"report.sample without a set that is evaluated", text("report.sample = 'x'")},
      {"report.sample with distribute.stages", text("report.sample = 'x'; data.validation = 'share(0.5)'; "
                                                    "data.unknown = 'replace'; distribute.stages = 2")},
      {"stratified parts or folds of data with a loss of numbers",
       "data.validation = 'stratified(0.1)'; " + numbers},
      {"eval.threshold with a model that does not say one yes or no", "eval.threshold = 0.3"},
      {"eval.threshold with a hinge loss", "eval.threshold = 0.3; train.loss = 'multiclass_hinge'"},
      {"train.calibrate without a validation set", "train.calibrate = 'temperature'"},
      {"train.calibrate with a loss that gives no probabilities",
       "train.calibrate = 'temperature'; train.loss = 'multiclass_hinge'; data.validation = 'share(0.1)'"}};
}

TEST(Refusals, OfRunsApply) {
  test::Given run = test::typical();
  EXPECT_NO_THROW(run.plan(4));
  for (const auto& [name, conflict] : conflicts_of_runs()) {
    test::expect_parts(test::error_text<ConfigError>([&conflict] { conflict.plan(4); }),
                       {"refused: " + name + "; "});
  }
  run.distribute.strategy = "parameter_server";
  run.distribute.mode = ServerMode::kAsync;
  run.distribute.servers = 1;
  EXPECT_NO_THROW(run.plan(3));
  run.data.audit = true;
  EXPECT_THROW(run.plan(3), ConfigError);
}

TEST(Refusals, OfConfigsApply) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "t.csv";
  write_file_atomically(file, "x,u,v,kind\n1,0,1,a\n2,1,0,b\n3,1,1,c\n4,0,0,a\n5,1,0,b\n6,0,1,c\n");
  const auto make = [&file](const Lines& lines) {
    const Lines all = fmt::format(
        "run.dir = '{0}.run'; data.format = 'csv'; data.train = '{0}'; data.label = ['kind']; "
        "model.layers = 'dense(3)'; train.epochs = 2; train.global_batch = 3; {1}",
        file.string(), lines);
    std::map<std::string, std::string> last;
    for (const std::string& line : test::split_text(all, "; ")) last[line.substr(0, line.find(' '))] = line;
    std::string text;
    for (const auto& [key, line] : last) text += line.ends_with('=') ? "" : line + "\n";
    make_experiment(load_training_config({}, {"c.toml", text}, {}), alone());
  };
  EXPECT_NO_THROW(make({}));
  for (const auto& [name, keys] : conflicts_of_configs())
    test::expect_parts(test::error_text<ConfigError>([&] { make(keys); }), {"refused: " + name + "; "});
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
  for (const auto& [name, conflict] : conflicts_of_runs()) used.insert(name);
  for (const auto& [name, lines] : conflicts_of_configs()) used.insert(name);
  used.insert(
      "bits_per_character in eval.metrics with data.tokens ids");  // needs ids: end_to_end/text_runs_test
  for (const Refusal& row : refusals()) {
    EXPECT_TRUE(used.contains(row.name)) << row.name;
    EXPECT_FALSE(row.reason.empty() || row.reason.ends_with('.')) << row.name;
  }
}

}  // namespace
}  // namespace lockstep::refusals_test
