#include "support/random_experiment.h"

#include "lockstep/base/catalog.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/optimizer.h"
#include "support/random_data.h"

namespace lockstep::test {
namespace {

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::ranges::find(texts, text) != texts.end();
}

}  // namespace

RandomExperiment::RandomExperiment(Dice& dice, const std::string& directory)
    : kind_(Kind{dice.chance(0.65) ? 0 : static_cast<int>(dice.whole(1, 3))}),
      rows_(dice.whole(50, 300)),
      replicas_(dice.chance(0.2) ? dice.whole(1, 2) : dice.whole(3, 8)) {
  set_number("run.seed", static_cast<double>(dice.whole(0, 1000)));
  set_number("run.log_every", static_cast<double>(dice.whole(1, 9)));
  draw_data(dice, directory);
  draw_order(dice);
  draw_model(dice);
  draw_optimizer(dice);
  draw_batches(dice);
  draw_evaluation(dice);
  draw_strategy(dice);
  draw_faults(dice);
  draw_contradiction(dice);
}

std::string RandomExperiment::config() const {
  return fmt::format("{}\n", fmt::join(lines_, "\n"));
}

void RandomExperiment::set(const std::string& key, const std::string& value) {
  set_plain(key, "\"" + value + "\"");
}

void RandomExperiment::set_plain(const std::string& key, const std::string& value) {
  lines_.push_back(key + " = " + value);
}

void RandomExperiment::set_number(const std::string& key, double value) {
  set_plain(key, fmt::format("{:.6g}", value));
}

void RandomExperiment::draw_data(Dice& dice, const std::string& directory) {
  data_.task = Task{static_cast<int>(dice.whole(0, 2))};
  data_.classes = dice.whole(2, 4);
  data_.packed = dice.chance(0.4);
  std::vector<std::string> formats = file_formats();
  data_.sequence = dice.chance(0.2);
  if (data_.sequence) {
    std::erase_if(formats, [](const std::string& name) { return name != "numpy" && name != "hdf5"; });
  } else if (data_.task != Task::kBinary) {
    formats.insert(formats.end(), {"synthetic", "synthetic"});
  }
  data_.format = dice.one_of(formats);
  const bool images = data_.format != "csv" && data_.format != "libsvm" && data_.format != "synthetic";
  if (data_.sequence) {
    data_.features = {{dice.whole(3, 8), dice.whole(1, 4)}};
    data_.padded = dice.chance(0.7);
    data_.of_positions = data_.task == Task::kClasses && dice.chance(0.5);
    set("data.record", "sequence");
  } else if (images && dice.chance(0.5)) {
    data_.features = {{dice.whole(5, 9), dice.whole(5, 9), dice.whole(1, 3)}};
  } else {
    data_.features = {{dice.whole(2, 12)}};
  }
  set("data.format", data_.format);
  if (data_.format == "synthetic") {
    set_number("data.synthetic_rows", static_cast<double>(rows_));
    set_number("data.synthetic_features", static_cast<double>(data_.features.size()));
    set_number("data.synthetic_classes",
               data_.task == Task::kClasses ? static_cast<double>(data_.classes) : 0);
    evaluated_ = dice.chance(0.7);
    if (evaluated_) set_number("data.synthetic_test_rows", static_cast<double>(dice.whole(1, 80)));
  } else {
    draw_files(dice, directory);
  }
  if (data_.format != "synthetic" && dice.chance(0.3)) {
    set("data.validation", fmt::format("share({:.6g})", dice.real(0.1, 0.4)));
    evaluated_ = validated_ = true;
  }
}

void RandomExperiment::draw_files(Dice& dice, const std::string& directory) {
  const auto add = [&](const std::string& split, Index rows) {
    const DataFiles files = write_random_data(dice, data_, directory + "/" + split, rows);
    set("data." + split, files.records);
    if (!files.labels.empty()) set("data." + split + "_labels", files.labels);
    if (!files.lengths.empty()) set("data." + split + "_lengths", files.lengths);
  };
  add("train", rows_);
  if (dice.chance(0.6)) {
    add("test", dice.whole(1, 80));
    evaluated_ = true;
  }
  if (data_.format == "raw") set("data.raw_layout", raw_layout(data_));
  if (data_.format == "libsvm" && data_.task == Task::kClasses)
    set_plain("data.columns", "[\"label: categorical\"]");
  if (data_.format != "csv") return;
  set_plain("data.label", "[\"y\"]");
  if (dice.chance(0.3)) set("data.weight", "share");
  set("data.encode", dice.one_of({"onehot", "index", "hash(3)"}));
  set("data.scale", dice.one_of({"standard", "minmax", "none"}));
}

// Which samples come when.
void RandomExperiment::draw_order(Dice& dice) {
  const bool stream = data_.format != "synthetic" && dice.chance(0.25);
  if (stream) {
    set("data.memory", "stream");
    set_number("data.shuffle_buffer", static_cast<double>(dice.whole(1, 40)));
  }
  if (data_.padded && !stream && dice.chance(0.5))
    set_number("data.bucket_by_length", static_cast<double>(dice.whole(1, 6)));
  if (dice.chance(0.25)) set("data.mode", "full");
  if (dice.chance(0.2)) {
    set("data.reshuffle", "global");
  } else if (dice.chance(0.2)) {
    set("data.shard_order", stream ? "contiguous" : dice.one_of({"contiguous", "strided"}));
  }
  if (data_.features.dims.size() == 3 && dice.chance(0.4))
    set("data.augment", dice.one_of({"flip", "crop(1)", "crop(2) flip cutout(2)"}));
  if (dice.chance(0.3)) set_number("data.mean", dice.real(-1, 1));
  if (dice.chance(0.3)) set_number("data.std", dice.real(0.5, 2));
}

void RandomExperiment::draw_model(Dice& dice) {
  const bool meet = kind_ == Kind::kOrdered || kind_ == Kind::kNative;  // else replicas step alone
  const std::string layers = draw_layers(dice, data_, meet);
  set("model.layers", layers);
  Shape record = data_.features;
  record.sequence = data_.sequence;
  const Model model({.layers = layers}, record);
  const auto has_weights = [](const ModelOp& op) { return !op.params.empty(); };
  layers_with_weights_ = std::ranges::count_if(model.ops(), has_weights);
  const bool normalises = layers.find("batch_norm") != std::string::npos;
  if (normalises && (meet || dice.chance(0.1)))
    set("model.batch_norm", dice.one_of({"local", "averaged", "sync", "group(2)", "group(3)"}));
  if (normalises && dice.chance(0.2)) set_number("eval.precise_bn", static_cast<double>(dice.whole(1, 20)));
  if (dice.chance(0.3)) set("model.init", dice.one_of({"he", "xavier", "normal"}));
  switch (data_.task) {
    case Task::kClasses:
      set("train.loss", "softmax_cross_entropy");
      if (dice.chance(0.3)) set_number("train.label_smoothing", dice.real(0, 0.3));
      break;
    case Task::kBinary:
      return set("train.loss", dice.one_of({"binary_cross_entropy", "binary_focal", "binary_hinge"}));
    case Task::kValues:
      return set("train.loss",
                 dice.one_of({"mean_squared_error", "mean_absolute_error", "huber", "quantile"}));
  }
}

void RandomExperiment::draw_optimizer(Dice& dice) {
  std::vector<std::string> names;
  for (const OptimizerEntry& entry : optimizer_catalog()) names.push_back(entry.name);
  const std::string name = dice.one_of(names);
  const std::vector<std::string>& reads = find_entry(optimizer_catalog(), "optimizer", name).options;
  set("train.optimizer", name);
  // Now and then so large that the loss overflows.
  set_number("train.lr", dice.chance(0.03) ? 1e5 : std::pow(10, dice.real(-3, -1)));
  if (contains(reads, "train.momentum") && dice.chance(0.7)) {
    set_number("train.momentum", dice.real(0.1, 0.95));
    if (contains(reads, "train.nesterov") && dice.chance(0.3)) set_plain("train.nesterov", "true");
  }
  if (contains(reads, "train.weight_decay") && dice.chance(0.4))
    set_number("train.weight_decay", dice.real(0, 0.1));
  if (dice.chance(0.4)) set_number("train.clip_norm", dice.real(0.1, 5));
  if (dice.chance(0.2)) set_number("train.clip_value", dice.real(0.001, 0.1));
  if (dice.chance(0.2)) set_plain("train.lr_multiplier", R"(["*.weight: 0.5", "*.bias: 2"])");
  draw_schedule(dice);
}

void RandomExperiment::draw_schedule(Dice& dice) {
  std::vector<std::string> names{"constant",   "step",   "milestones", "exponential",
                                 "polynomial", "cosine", "one_cycle",  "wsd"};
  if (validated_) names.emplace_back("plateau");
  const std::string schedule = dice.one_of(names);
  set("train.schedule", schedule);
  if (schedule == "step" || schedule == "exponential")
    set("train.decay_every", fmt::format("{} steps", dice.whole(1, 10)));
  if (schedule == "milestones") set_plain("train.milestones", R"(["4 steps", "1 epoch"])");
  if (schedule == "plateau") set("train.plateau_patience", fmt::format("{} evaluations", dice.whole(1, 2)));
  if (dice.chance(0.3) && schedule != "one_cycle")
    set("train.warmup", fmt::format("{} samples", dice.whole(1, 200)));
  if (dice.chance(0.2)) set("train.lr_scaling", dice.one_of({"linear", "sqrt"}));
}

// About ten to sixty steps.
void RandomExperiment::draw_batches(Dice& dice) {
  set_number("train.replicas", static_cast<double>(replicas_));
  Index batch = dice.whole(replicas_, 10 * replicas_);
  if (kind_ == Kind::kAlone) batch = std::max<Index>(1, batch / replicas_) * replicas_;
  set_number("train.global_batch", static_cast<double>(batch));
  switch (dice.whole(0, 2)) {
    case 0:
      set_number("train.epochs", dice.real(0.5, 4));
      break;
    case 1:
      in_steps_ = true;
      set_number("train.steps", static_cast<double>(dice.whole(5, 60)));
      break;
    default:
      set_number("train.samples", static_cast<double>(batch * dice.whole(5, 50) + dice.whole(0, 9)));
  }
  if (dice.chance(0.25)) {
    set("train.tail", "drop");
  } else if (dice.chance(0.2) && kind_ != Kind::kAlone) {
    set_plain("data.audit", "true");
  }
  if (dice.chance(0.2) && kind_ != Kind::kLocal && kind_ != Kind::kAlone) {
    set_number("train.ema", dice.real(0.5, 0.99));
  } else if (dice.chance(0.2)) {
    set("train.swa_from", fmt::format("{} steps", dice.whole(0, 6)));
  }
  if (dice.chance(0.25)) set_number("train.accumulate", static_cast<double>(dice.whole(2, 4)));
}

void RandomExperiment::draw_evaluation(Dice& dice) {
  if (!evaluated_) return;
  set("eval.every", dice.chance(0.3) ? fmt::format("{} steps", dice.whole(1, 15))
                                     : fmt::format("{:.3g} epochs", dice.real(0.3, 2)));
  if (dice.chance(0.2)) set_plain("eval.at_start", "true");
  set_number("eval.batch", static_cast<double>(dice.whole(1, 100)));
  if (!validated_) return;
  if (dice.chance(0.3)) set("train.keep", "last");
  if (dice.chance(0.3)) set("train.early_stopping", fmt::format("{} evaluations", dice.whole(1, 3)));
}

void RandomExperiment::draw_strategy(Dice& dice) {
  const bool ordered = same_bits();
  set("distribute.reduction", ordered ? "ordered" : "native");
  set("checkpoint.every", fmt::format("{} steps", dice.whole(1, 7)));
  set_number("checkpoint.keep", static_cast<double>(dice.whole(1, 3)));
  set_plain("checkpoint.wait", dice.chance(0.5) ? "true" : "false");
  if (kind_ == Kind::kLocal) {
    set("distribute.strategy", "local_sgd");
    set_number("distribute.average_every", static_cast<double>(dice.whole(1, 7)));
    if (dice.chance(0.4)) set("distribute.local_after", fmt::format("{} steps", dice.whole(1, 12)));
    if (dice.chance(0.4)) set_plain("distribute.average_state", "true");
    if (dice.chance(0.4)) set_number("distribute.block_momentum", dice.real(0.1, 0.9));
  }
  if (kind_ == Kind::kAlone) {
    set("distribute.strategy", "parameter_server");
    const std::string mode = dice.one_of({"async", "bounded"});
    set("distribute.mode", mode);
    if (mode == "bounded") set_number("distribute.staleness", static_cast<double>(dice.whole(0, 3)));
    if (dice.chance(0.3)) set_plain("distribute.staleness_lr", "true");
  }
  lossy_ = !ordered && dice.chance(0.4);
  if (lossy_) {
    set("distribute.compression", dice.one_of({"bf16", "fp16", "top_k"}));
    if (dice.chance(0.4)) set_plain("distribute.error_feedback", "false");
  }
}

// Steps that are not good, in which all ranks must do the same.
void RandomExperiment::draw_faults(Dice& dice) {
  if (kind_ == Kind::kLocal || kind_ == Kind::kAlone || !dice.chance(0.08)) return;
  set("train.on_nan", dice.one_of({"skip", "skip", "stop"}));
  set_number("debug.nan_replica", static_cast<double>(dice.whole(0, replicas_ - 1)));
  set_number("debug.nan_step", static_cast<double>(dice.whole(0, 8)));
  set_number("debug.nan_steps", static_cast<double>(dice.whole(1, 3)));
}

// What all ranks must refuse; now and then it suits the experiment after all.
void RandomExperiment::draw_contradiction(Dice& dice) {
  if (!dice.chance(0.06)) return;
  const std::vector<std::string> settings{"model.batch_norm = \"group(99)\"",
                                          "data.augment = \"flip\"",
                                          "data.audit = true\ntrain.tail = \"drop\"",
                                          "train.rho = 0.5",
                                          "data.shard_order = \"strided\"",
                                          "data.bucket_by_length = 3",
                                          "distribute.staleness = 2",
                                          "train.huber_delta = 2.0",
                                          "eval.metrics = [\"auc\"]",
                                          "train.layers = 3"};
  lines_.push_back(dice.one_of(settings));
}

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
  // Two ranks may have a half of the model each, if it can be cut.
  const bool meet = kind_ == Kind::kOrdered || kind_ == Kind::kNative;
  const bool stages = meet && !lossy_ && workers == 2 && layers_with_weights_ >= 2 && dice.chance(0.4);
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
