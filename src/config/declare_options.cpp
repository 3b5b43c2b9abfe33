#include "option_list.h"

namespace lockstep {
namespace {

void declare_run(const auto& run) {
  run.option("run.dir", &RunOptions::dir);
  run.option("run.resume", &RunOptions::resume);
  run.option("run.resume_allow", &RunOptions::resume_allow);
  run.option("run.time_limit", &RunOptions::time_limit);
  run.option("run.seed", &RunOptions::seed, at_least(0));
  run.option("run.progress", &RunOptions::progress);
  run.option("run.plan", &RunOptions::plan);
  run.option("run.log_every", &RunOptions::log_every, at_least(1));
}

bool is_streamed(const Config& config) {
  return config.data.memory != MemoryMode::kLoad;
}

void declare_synthetic(const auto& synthetic) {
  synthetic.option("data.synthetic_rows", &SyntheticOptions::rows, between(1, kMaxSamples));
  synthetic.option("data.synthetic_validation_rows", &SyntheticOptions::validation_rows,
                   between(0, kMaxSamples));
  synthetic.option("data.synthetic_test_rows", &SyntheticOptions::test_rows, between(0, kMaxSamples));
  synthetic.option("data.synthetic_features", &SyntheticOptions::features, between(1, kMaxWidth));
  synthetic.option("data.synthetic_classes", &SyntheticOptions::classes, between(0, kMaxWidth));
  synthetic.option("data.synthetic_noise", &SyntheticOptions::noise, at_least(0));
}

void declare_table(const auto& table) {
  table.option("data.label", &TableOptions::label);
  table.option("data.positive", &TableOptions::positive);
  table.option("data.weight", &TableOptions::weight);
  table.option("data.numeric", &TableOptions::numeric);
  table.option("data.categorical", &TableOptions::categorical);
  table.option("data.ignore", &TableOptions::ignore);
  table.option("data.columns", &TableOptions::columns);
  table.option("data.scale", &TableOptions::scale);
  table.option("data.missing", &TableOptions::missing);
  table.option("data.encode", &TableOptions::encode);
  table.option("data.missing_values", &TableOptions::missing_values);
  table.option("data.fold_case", &TableOptions::fold_case);
  table.option("data.vocabulary", &TableOptions::vocabulary, between(1, kMaxWidth));
  table.option("data.header", &TableOptions::header);
  table.choice("data.separator", &TableOptions::separator, {"auto", ",", "tab", ";", "|", " "});
  table.choice("data.decimal", &TableOptions::decimal, {".", ","});
  table.choice("data.thousands", &TableOptions::thousands, {"none", ",", ".", "space", "apostrophe"});
  table.option("data.strict", &TableOptions::strict);
  table.option("data.encoding", &TableOptions::encoding);
  table.option("data.skip_lines", &TableOptions::skip_lines, between(0, 100'000));
  table.option("data.quotes", &TableOptions::quotes);
  table.option("data.on_bad_record", &TableOptions::on_bad_record);
  table.option("data.max_bad_share", &TableOptions::max_bad_share, between(0, 1));
  table.option("data.chunk_kib", &TableOptions::chunk_kib, between(1, 1 << 20));
}

bool has_windows(const Config& config) {
  return config.data.table.windows.any();
}

void declare_text(const auto& text) {
  text.option("data.tokens", &TextOptions::tokens);
  text.choice("data.unknown", &TextOptions::unknown, {"refuse", "replace"});
  text.choice("data.draw", &TextOptions::draw, {"in turn", "anywhere"});
  text.option("data.token_cache", &TextOptions::cache);
}

void declare_windows(const auto& windows) {
  windows.option("data.time", &WindowOptions::time).is_read = has_windows;
  windows.option("data.series", &WindowOptions::series).is_read = has_windows;
  windows.option("data.window", &WindowOptions::window, between(1, 1'000'000));
  windows.option("data.horizon", &WindowOptions::horizon, between(1, 100'000)).is_read = has_windows;
  windows.option("data.stride", &WindowOptions::stride, between(1, kMaxSamples)).is_read = has_windows;
  windows.option("data.future", &WindowOptions::future).is_read = has_windows;
  windows.option("data.window_scale", &WindowOptions::scale).is_read = has_windows;
  windows.option("data.fill_gaps", &WindowOptions::fill).is_read = has_windows;
  windows.option("data.season", &WindowOptions::season, between(1, 1'000'000)).is_read = has_windows;
}

void declare_data(const auto& data, const KnownNames& names) {
  data.choice("data.format", &DataOptions::format, names.formats);
  data.option("data.train", &DataOptions::train);
  data.option("data.train_labels", &DataOptions::train_labels);
  data.option("data.train_weights", &DataOptions::train_weights);
  data.option("data.train_lengths", &DataOptions::train_lengths);
  data.option("data.validation", &DataOptions::validation);
  data.option("data.validation_labels", &DataOptions::validation_labels);
  data.option("data.validation_weights", &DataOptions::validation_weights);
  data.option("data.validation_lengths", &DataOptions::validation_lengths);
  data.option("data.test", &DataOptions::test);
  data.option("data.test_labels", &DataOptions::test_labels);
  data.option("data.test_weights", &DataOptions::test_weights);
  data.option("data.test_lengths", &DataOptions::test_lengths);
  data.option("data.test_part", &DataOptions::test_part);
  data.option("data.record", &DataOptions::record);
  data.option("data.mode", &DataOptions::mode);
  data.option("data.mean", &DataOptions::mean);
  data.option("data.std", &DataOptions::std, above(0));
  data.option("data.augment", &DataOptions::augment);
  data.option("data.prefetch", &DataOptions::prefetch, between(0, 1000));
  data.option("data.memory", &DataOptions::memory);
  data.option("data.memory_limit", &DataOptions::memory_limit, above_up_to(0, 1e6)).is_read = is_streamed;
  data.option("data.shuffle_buffer", &DataOptions::shuffle_buffer, between(1, kMaxSamples)).is_read =
      is_streamed;
  data.option("data.shard_order", &DataOptions::shard_order);
  data.option("data.shard_by", &DataOptions::shard_by).is_read = is_streamed;
  data.option("data.audit", &DataOptions::audit);
  data.option("data.reshuffle", &DataOptions::reshuffle);
  data.option("data.bucket_by_length", &DataOptions::bucket_by_length, between(0, 1'000'000));
  data.option("data.raw_layout", &DataOptions::raw_layout);
  declare_synthetic(data.inner(&DataOptions::synthetic));
  declare_table(data.inner(&DataOptions::table));
  declare_windows(data.inner(&DataOptions::table).inner(&TableOptions::windows));
  declare_text(data.inner(&DataOptions::text));
}

void declare_model(const auto& model, const KnownNames& names) {
  model.option("model.layers", &ModelOptions::layers);
  model.choice("model.preset", &ModelOptions::preset, names.presets);
  model.option("model.outputs", &ModelOptions::outputs, between(1, kMaxWidth)).is_read = [](const Config& c) {
    return !c.model.preset.empty();
  };
  model.choice("model.init", &ModelOptions::init, {"he", "xavier", "normal", "zero"});
  model.option("model.batch_norm", &ModelOptions::batch_norm).is_read = names.facts.has_batch_norm;
  model.option("model.init_std", &ModelOptions::init_std, above(0)).is_read = [](const Config& c) {
    return c.model.init == "normal";
  };
}

void declare_loss(const auto& loss, const KnownNames& names) {
  loss.choice("train.loss", &LossOptions::loss, names.losses);
  loss.option("train.label_smoothing", &LossOptions::label_smoothing, from_to_below(0, 1));
  loss.option("train.huber_delta", &LossOptions::huber_delta, above(0));
  loss.option("train.quantiles", &LossOptions::quantiles, above_to_below(0, 1));
  loss.option("train.tweedie_power", &LossOptions::tweedie_power, above_to_below(1, 2));
  loss.option("train.focal_gamma", &LossOptions::focal_gamma, between(0, 100));
  loss.option("train.focal_alpha", &LossOptions::focal_alpha, above_to_below(0, 1));
}

void declare_optimizer(const auto& optimizer, const KnownNames& names) {
  optimizer.choice("train.optimizer", &OptimizerOptions::optimizer, names.optimizers);
  optimizer.option("train.momentum", &OptimizerOptions::momentum, from_to_below(0, 1));
  optimizer.option("train.nesterov", &OptimizerOptions::nesterov);
  optimizer.option("train.beta1", &OptimizerOptions::beta1, from_to_below(0, 1));
  optimizer.option("train.beta2", &OptimizerOptions::beta2, from_to_below(0, 1));
  optimizer.option("train.epsilon", &OptimizerOptions::epsilon, above(0));
  optimizer.option("train.rho", &OptimizerOptions::rho, from_to_below(0, 1));
  optimizer.option("train.momentum_decay", &OptimizerOptions::momentum_decay, at_least(0));
  optimizer.option("train.beta2_decay", &OptimizerOptions::beta2_decay, above(0));
  optimizer.option("train.scale_parameter", &OptimizerOptions::scale_parameter);
  optimizer.option("train.adamw_lr_multiplier", &OptimizerOptions::adamw_lr_multiplier, above(0));
  optimizer.option("train.weight_decay", &OptimizerOptions::weight_decay, at_least(0));
  optimizer.option("train.lr_multiplier", &OptimizerOptions::lr_multiplier);
  optimizer.option("train.weight_decay_multiplier", &OptimizerOptions::weight_decay_multiplier).is_read =
      [](const Config& c) { return c.optimizer.weight_decay > 0; };
  optimizer.option("train.clip_norm", &OptimizerOptions::clip_norm, at_least(0));
  optimizer.option("train.clip_value", &OptimizerOptions::clip_value, at_least(0));
}

void declare_schedule(const auto& schedule, const KnownNames& names) {
  schedule.option("train.lr", &ScheduleOptions::lr, above_up_to(0, 1e6));
  schedule.choice("train.lr_scaling", &ScheduleOptions::lr_scaling, {"none", "linear", "sqrt"});
  schedule.option("train.lr_reference_batch", &ScheduleOptions::lr_reference_batch, between(1, kMaxBatch))
      .is_read = [](const Config& c) { return c.schedule.lr_scaling != "none"; };
  schedule.choice("train.schedule", &ScheduleOptions::schedule, names.schedules);
  schedule.option("train.warmup", &ScheduleOptions::warmup);
  schedule.option("train.warmup_from", &ScheduleOptions::warmup_from, between(0, 1));
  schedule.option("train.decay_every", &ScheduleOptions::decay_every);
  schedule.option("train.milestones", &ScheduleOptions::milestones);
  schedule.option("train.decay_factor", &ScheduleOptions::decay_factor, above(0));
  schedule.option("train.decay_power", &ScheduleOptions::decay_power, above(0));
  schedule.option("train.warmup_share", &ScheduleOptions::warmup_share, from_to_below(0, 1));
  schedule.option("train.decay_share", &ScheduleOptions::decay_share, above_up_to(0, 1));
  schedule.option("train.plateau_patience", &ScheduleOptions::plateau_patience);
  schedule.option("train.plateau_min_delta", &ScheduleOptions::plateau_min_delta, at_least(0));
  schedule.option("train.end_lr", &ScheduleOptions::end_lr, between(0, 1e6));
}

void declare_model_selection(const auto& train) {
  train.choice("train.keep", &TrainOptions::keep, {"best", "last"}).is_read = has_validation;
  train.option("train.early_stopping", &TrainOptions::early_stopping).is_read = has_validation;
  train.option("train.early_stopping_metric", &TrainOptions::early_stopping_metric).is_read = has_validation;
  train.option("train.early_stopping_min_delta", &TrainOptions::early_stopping_min_delta, at_least(0))
      .is_read = [](const Config& c) { return !c.train.early_stopping.empty(); };
}

void declare_train(const auto& train, const auto& model, const auto& data) {
  train.option("train.init", &TrainOptions::init);
  const auto has_init = [](const Config& c) { return !c.train.init.empty(); };
  train.choice("train.init_map", &TrainOptions::init_map, {"gpt2"}).is_read = has_init;
  train.option("train.init_rename", &TrainOptions::init_rename).is_read = [has_init](const Config& c) {
    return has_init(c) && c.train.init_map.empty();
  };
  train.option("train.init_partial", &TrainOptions::init_partial).is_read = has_init;
  train.option("train.epochs", &TrainOptions::epochs, above_up_to(0, 1e6));
  train.option("train.steps", &TrainOptions::steps, between(1, kMaxSamples));
  train.option("train.samples", &TrainOptions::samples, between(1, kMaxSamples));
  train.option("train.global_batch", &TrainOptions::global_batch, between(1, kMaxBatch));
  train.option("train.per_replica_batch", &TrainOptions::per_replica_batch, between(1, kMaxBatch));
  train.option("train.replicas", &TrainOptions::replicas, between(1, kMaxReplicas));
  train.option("train.threads", &TrainOptions::threads, between(1, 1024));
  train.option("train.accumulate", &TrainOptions::accumulate, between(1, kMaxBatch));
  model.option("train.precision", &ModelOptions::precision);
  data.option("train.ignore_label", &DataOptions::ignore_label);
  train.option("train.tail", &TrainOptions::tail);
  train.option("train.on_nan", &TrainOptions::on_nan);
  train.option("train.skip_limit", &TrainOptions::skip_limit, at_least(1)).is_read = [](const Config& c) {
    return c.train.on_nan == OnNan::kSkip;
  };
  declare_model_selection(train);
  train.option("train.ema", &TrainOptions::ema, from_to_below(0, 1));
  train.option("train.swa_from", &TrainOptions::swa_from);
  train.choice("train.calibrate", &TrainOptions::calibrate, {kNoCalibration, "temperature"});
}

void declare_eval(const auto& eval, const KnownNames& names) {
  eval.option("eval.every", &EvalOptions::every);
  eval.option("eval.at_start", &EvalOptions::at_start);
  eval.option("eval.batch", &EvalOptions::batch, between(1, kMaxBatch));
  eval.option("eval.precise_bn", &EvalOptions::precise_bn, between(0, 1e6)).is_read =
      names.facts.has_batch_norm;
  eval.option("eval.class_weights", &EvalOptions::class_weights).is_read = [](const Config& c) {
    return !c.train.class_weights.empty();
  };
  eval.option("eval.top_k", &EvalOptions::top_k, between(1, kMaxWidth));
  eval.choice("eval.metrics", &EvalOptions::metrics, names.metrics);
  eval.option("eval.threshold", &EvalOptions::threshold);
}

void declare_checkpoint(const auto& checkpoint) {
  checkpoint.option("checkpoint.every", &CheckpointOptions::every);
  checkpoint.option("checkpoint.wait", &CheckpointOptions::wait);
  checkpoint.option("checkpoint.keep", &CheckpointOptions::keep, at_least(1));
  checkpoint.option("checkpoint.dir", &CheckpointOptions::dir);
}

void declare_report(const auto& report) {
  report.option("report.html", &ReportOptions::html);
  report.option("report.tensorboard", &ReportOptions::tensorboard);
  report.option("report.histograms", &ReportOptions::histograms).is_read = [](const Config& c) {
    return c.report.tensorboard;
  };
  report.option("report.trace", &ReportOptions::trace);
  report.option("report.sample", &ReportOptions::sample);
}

void declare_local_steps(const auto& distribute) {
  distribute.option("distribute.average_every", &DistOptions::average_every, at_least(1));
  distribute.option("distribute.average_state", &DistOptions::average_state);
  distribute.option("distribute.local_after", &DistOptions::local_after);
  distribute.option("distribute.block_momentum", &DistOptions::block_momentum, from_to_below(0, 1));
  distribute.option("distribute.block_lr", &DistOptions::block_lr, above_up_to(0, 1e6));
  distribute.option("distribute.block_nesterov", &DistOptions::block_nesterov).is_read = [](const Config& c) {
    return c.distribute.block_momentum > 0;
  };
}

// How the model is divided among the ranks of a group.
void declare_stages(const auto& distribute) {
  const auto divided = [](const Config& c) { return c.distribute.stages != 1; };
  distribute.count_or_auto("distribute.stages", &DistOptions::stages, between(1, kMaxReplicas));
  distribute.option("distribute.cut", &DistOptions::cut).is_read = divided;
  distribute.option("distribute.schedule", &DistOptions::schedule).is_read = divided;
  distribute.option("distribute.placement", &DistOptions::placement).is_read = divided;
  distribute.option("distribute.memory_per_rank", &DistOptions::memory_per_rank, between(0, 1e6));
}

void declare_distribute(const auto& distribute, const KnownNames& names) {
  distribute.choice("distribute.strategy", &DistOptions::strategy, names.strategies);
  distribute.option("distribute.reduction", &DistOptions::reduction);
  distribute.choice("distribute.algorithm", &DistOptions::algorithm, names.algorithms).is_read =
      names.facts.uses_algorithm;
  distribute.option("distribute.calibrate", &DistOptions::calibrate).is_read = names.facts.calibrates;
  distribute.option("distribute.bucket_kib", &DistOptions::bucket_kib, between(1, 1e9));
  distribute.option("distribute.progress_thread", &DistOptions::progress_thread);
  distribute.option("distribute.servers", &DistOptions::servers, between(1, kMaxReplicas));
  distribute.option("distribute.mode", &DistOptions::mode);
  distribute.option("distribute.staleness", &DistOptions::staleness, between(0, 1e6)).is_read =
      [](const Config& c) { return c.distribute.mode == ServerMode::kBounded; };
  distribute.option("distribute.backup_workers", &DistOptions::backup_workers, between(0, kMaxReplicas));
  distribute.option("distribute.staleness_lr", &DistOptions::staleness_lr).is_read = [](const Config& c) {
    return c.distribute.mode != ServerMode::kSync;
  };
  distribute.option("distribute.record", &DistOptions::record).is_read = names.facts.asynchronous;
  distribute.option("distribute.replay", &DistOptions::replay).is_read = names.facts.asynchronous;
  distribute.option("distribute.timeout_seconds", &DistOptions::timeout_seconds, above_up_to(0, 1e6))
      .is_read = names.facts.asynchronous;
  distribute.choice("distribute.compression", &DistOptions::compression, names.codecs);
  distribute.option("distribute.error_feedback", &DistOptions::error_feedback);
  distribute.option("distribute.top_k", &DistOptions::top_k, above_up_to(0, 1));
  declare_local_steps(distribute);
  declare_stages(distribute);
}

void declare_comm(const auto& comm) {
  comm.option("comm.stall_seconds", &CommOptions::stall_seconds, between(0, 1e6));
  comm.option("comm.abort_seconds", &CommOptions::abort_seconds, between(0, 1e6));
  comm.option("comm.verify_every", &CommOptions::verify_every, at_least(0));
  comm.option("comm.on_desync", &CommOptions::on_desync);
}

void declare_debug(const auto& debug) {
  debug.option("debug.fail_rank", &DebugOptions::fail_rank, at_least(0));
  debug.option("debug.fail_step", &DebugOptions::fail_step, at_least(0));
  debug.option("debug.delay_rank", &DebugOptions::delay_rank, at_least(0));
  debug.option("debug.hang_rank", &DebugOptions::hang_rank, at_least(0));
  debug.option("debug.hang_step", &DebugOptions::hang_step, at_least(0));
  debug.option("debug.hang", &DebugOptions::hang);
  debug.option("debug.flip_rank", &DebugOptions::flip_rank, at_least(0));
  debug.option("debug.flip_step", &DebugOptions::flip_step, at_least(0));
  debug.option("debug.nan_replica", &DebugOptions::nan_replica, at_least(0));
  debug.option("debug.nan_step", &DebugOptions::nan_step, at_least(0));
  debug.option("debug.nan_steps", &DebugOptions::nan_steps, at_least(1));
  debug.option("debug.ranks_per_node", &DebugOptions::ranks_per_node, at_least(1));
  debug.option("debug.server_mbit", &DebugOptions::server_mbit, at_least(0));
  debug.option("debug.delay_ms", &DebugOptions::delay_ms, at_least(0));
  debug.option("debug.emulate_bf16", &DebugOptions::emulate_bf16);
}

}  // namespace

std::vector<Option> declare_options(const KnownNames& names) {
  OptionList list;
  const auto section = [&list](auto member) {
    return Fields(
        list, [member](auto& config) -> auto& { return config.*member; });
  };
  const auto model = section(&Config::model);
  const auto train = section(&Config::train);
  declare_run(section(&Config::run));
  declare_data(section(&Config::data), names);
  declare_model(model, names);
  declare_loss(section(&Config::loss), names);
  train.option("train.class_weights", &TrainOptions::class_weights);
  declare_optimizer(section(&Config::optimizer), names);
  declare_schedule(section(&Config::schedule), names);
  declare_train(train, model, section(&Config::data));
  declare_eval(section(&Config::eval), names);
  declare_checkpoint(section(&Config::checkpoint));
  declare_report(section(&Config::report));
  declare_distribute(section(&Config::distribute), names);
  declare_comm(section(&Config::comm));
  declare_debug(section(&Config::debug));
  return list.take();
}

}  // namespace lockstep
