#include "run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/trainer.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/checkpoint.h"

namespace lockstep {
namespace {

// On one node nothing has to be sent: the fastest is to share one copy of the weights.
std::string choose_strategy(const Config& config, const Placement& placement) {
  const Index pretended = config.debug.ranks_per_node;
  const bool one_node = placement.hosts == 1 && (pretended == 0 || placement.ranks <= pretended);
  const bool wants_exchange = std::ranges::any_of(known_options(), [&config](const Option& option) {
    return option.about_exchange && config.given.contains(option.key);
  });
  return one_node && !wants_exchange ? "central_storage" : "allreduce";
}

// Combinations of keys about sets and evaluations, which every command refuses, before data are opened.
void refuse_sets(const Config& config) {
  const DataOptions& data = config.data;
  const ThresholdRule threshold = parse_threshold("eval.threshold", config.eval.threshold);
  refuse_if(validation_part(data) && (!data.validation_labels.empty() || !data.validation_weights.empty()),
            "data.validation_labels or data.validation_weights with a part of the training samples");
  refuse_if(!data.test_part.empty() && !data.test.empty(), "data.test with data.test_part");
  const DataKind& kind = kind_of(data);
  if (kind.refusals != nullptr) {
    for (const KindRefusal& refusal : kind.refusals(data)) refuse_if(refusal.applies, refusal.name);
  }
  refuse_if(data.text.tokens == "ids" && std::ranges::count(config.eval.metrics, "bits_per_character") > 0,
            "bits_per_character in eval.metrics with data.tokens ids");
  refuse_if(!threshold.measure.empty() && !has_validation(config),
            "eval.threshold by a measure without a validation set");
}

// Combinations that only a training refuses.
void refuse_training(const Config& config) {
  const TrainOptions& train = config.train;
  const bool validates = has_validation(config);
  refuse_if(train.ema > 0 && !train.swa_from.empty(), "train.ema with train.swa_from");
  refuse_if(train.per_replica_batch > 0 && train.replicas == 0,
            "train.per_replica_batch without train.replicas");
  refuse_if(follows_evaluations(config.schedule) && !validates,
            "train.schedule plateau without a validation set");
  if (const std::optional<ValidationPart> part = validation_part(config.data))
    refuse_classes_of_numbers(config, *part);
  const bool calibrates = train.calibrate != kNoCalibration;
  refuse_if(calibrates && !validates, "train.calibrate without a validation set");
  refuse_if(calibrates && !has_probabilities(make_loss(config)->form()),
            "train.calibrate with a loss that gives no probabilities");
}

WindowScaling scaling_of_windows(const TableOptions& table) {
  using Kind = WindowScaling::Kind;
  const WindowOptions& windows = table.windows;
  if (windows.time.empty() || windows.scale == WindowScale::kNone) return {};
  return {.kind = windows.scale == WindowScale::kLast ? Kind::kLast : Kind::kStandard,
          .labels = std::ssize(table.label),
          .window = windows.window};
}

void complete_and_check(Config& config) {
  check_config(config, known_options(), choices(config));
  config.data.format = choose_format(config.data).name;  // a resume may not have the files of today
  config.model.window_scaling = scaling_of_windows(config.data.table);
  refuse_sets(config);
}

}  // namespace

std::string other_kind(const Config& run, const Config& now) {
  const bool unknown = run.data.format.empty() || now.data.format.empty();
  if (unknown || kind_of(run.data).name == kind_of(now.data).name) return "";
  if (run.data.format != now.data.format)
    return fmt::format("data.format {}, not {}", run.data.format, now.data.format);
  return fmt::format("{}, not {}", kind_of(run.data).name, kind_of(now.data).name);
}

TrainingSettings training_settings(const Config& config) {
  return {.sums = local_sums(config.distribute),
          .seed = static_cast<std::uint64_t>(config.run.seed),
          .audit = config.data.audit,
          .accumulate = config.train.accumulate,
          .schedule = config.distribute.schedule,
          .log_every = config.run.log_every,
          .histograms = config.report.tensorboard && config.report.histograms,
          .evaluate_every = parse_training_interval("eval.every", config.eval.every),
          .evaluates_at_start = config.eval.at_start,
          .calibration_steps = config.eval.precise_bn,
          .calibrates = config.train.calibrate != kNoCalibration,
          .on_nan = config.train.on_nan,
          .skip_limit = config.train.skip_limit,
          .ranks = config.comm,
          .debug = config.debug};
}

std::unique_ptr<Loss> make_loss(const Config& config) {
  return find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
}

std::string token_directory(const Config& config) {
  if (!config.data.text.cache.empty()) return config.data.text.cache;
  const std::filesystem::path run = config.run.dir;
  return (run.has_filename() ? run.parent_path() : run.parent_path().parent_path()) / ".tokens";
}

Config load_training_config(const CommandLine& line, const ConfigText& text, const Placement& placement) {
  Config config = load_config(line, text, known_options());
  if (config.distribute.strategy == kAutoStrategy) {
    config.distribute.strategy = choose_strategy(config, placement);
  }
  complete_and_check(config);
  refuse_training(config);
  parse_training_interval("eval.every", config.eval.every);
  return config;
}

Config load_run_config(const CommandLine& line, const ConfigText& text) {
  Config config = load_config(line, text, known_options());
  if (!config.data.test.empty()) config.data.test_part.clear();  // a file that was there later
  complete_and_check(config);
  return config;
}

void refuse_classes_of_numbers(const Config& config, const ValidationPart& part) {
  const bool of_numbers = make_loss(config)->targets() == TargetKind::kValue;
  refuse_if(part.by == ValidationPart::By::kClass && of_numbers,
            "stratified parts or folds of data with a loss of numbers");
}

void refuse_stages(const Config& config) {
  error_if(
      config.distribute.stages != 1 && config.distribute.stages != kAutoStages,
      "trainer bench measures the model as a whole: give --distribute.stages 1; `trainer plan --np` says "
      "what the stages do and need");
}

}  // namespace lockstep
