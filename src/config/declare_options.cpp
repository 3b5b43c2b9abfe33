#include "option_list.h"

namespace lockstep {
namespace {

void declare_run(OptionList& list, RunOptions& run) {
  list.begin_section(OnResume::kMayChange);
  list.option("run.dir", run.dir).most_used();
  list.option("run.resume", run.resume);
  list.option("run.resume_allow", run.resume_allow);
  list.option("run.time_limit", run.time_limit);
  list.option("run.seed", run.seed, at_least(0)).on_resume(OnResume::kMustStay);
  list.option("run.progress", run.progress);
  list.option("run.plan", run.plan).alias("plan");
  list.option("run.log_every", run.log_every, at_least(1));
}

bool is_streamed(const Config& config) {
  return config.data.memory != MemoryMode::kLoad;
}

void declare_synthetic(OptionList& list, SyntheticOptions& synthetic) {
  list.option("data.synthetic_rows", synthetic.rows, between(1, kMaxSamples));
  list.option("data.synthetic_validation_rows", synthetic.validation_rows, between(0, kMaxSamples))
      .on_resume(OnResume::kMayChange);
  list.option("data.synthetic_test_rows", synthetic.test_rows, between(0, kMaxSamples))
      .on_resume(OnResume::kMayChange);
  list.option("data.synthetic_features", synthetic.features, between(1, kMaxWidth));
  list.option("data.synthetic_classes", synthetic.classes, between(0, kMaxWidth));
  list.option("data.synthetic_noise", synthetic.noise, at_least(0));
}

void declare_table(OptionList& list, TableOptions& table) {
  list.option("data.label", table.label).counterpart("data.train_labels").alias("label");
  list.option("data.weight", table.weight).counterpart("data.train_weights").alias("weight");
  list.option("data.numeric", table.numeric);
  list.option("data.categorical", table.categorical);
  list.option("data.ignore", table.ignore);
  list.option("data.columns", table.columns);
  list.option("data.scale", table.scale);
  list.option("data.missing", table.missing);
  list.option("data.encode", table.encode);
  list.option("data.missing_values", table.missing_values);
  list.option("data.vocabulary", table.vocabulary, between(1, kMaxWidth));
  list.option("data.header", table.header);
  list.choice("data.separator", table.separator, {"auto", ",", "tab", ";", "|", " "});
  list.choice("data.decimal", table.decimal, {".", ","});
  list.choice("data.thousands", table.thousands, {"none", ",", ".", "space", "apostrophe"});
  list.option("data.strict", table.strict);
  list.option("data.encoding", table.encoding);
  list.option("data.skip_lines", table.skip_lines, between(0, 100'000));
  list.option("data.quotes", table.quotes);
  list.option("data.on_bad_record", table.on_bad_record);
  list.option("data.max_bad_share", table.max_bad_share, between(0, 1));
  list.option("data.chunk_kib", table.chunk_kib, between(1, 1 << 20));
}

void declare_data(OptionList& list, DataOptions& data, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.choice("data.format", data.format, names.formats);
  list.option("data.train", data.train)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.synthetic_rows")
      .most_used();
  list.option("data.train_labels", data.train_labels)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.label");
  list.option("data.train_weights", data.train_weights)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.weight");
  list.option("data.validation", data.validation)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.synthetic_validation_rows");
  list.option("data.validation_labels", data.validation_labels)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.label");
  list.option("data.validation_weights", data.validation_weights)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.weight");
  list.option("data.test", data.test).on_resume(OnResume::kMayChange).counterpart("data.synthetic_test_rows");
  list.option("data.test_labels", data.test_labels).on_resume(OnResume::kMayChange).counterpart("data.label");
  list.option("data.test_weights", data.test_weights)
      .on_resume(OnResume::kMayChange)
      .counterpart("data.weight");
  list.option("data.mode", data.mode);
  list.option("data.mean", data.mean);
  list.option("data.std", data.std, above(0));
  list.option("data.augment", data.augment);
  list.option("data.prefetch", data.prefetch, between(0, 1000)).on_resume(OnResume::kMayChange);
  list.option("data.memory", data.memory);
  list.option("data.memory_limit", data.memory_limit, above_up_to(0, 1e6)).read_if(is_streamed);
  list.option("data.shuffle_buffer", data.shuffle_buffer, between(1, kMaxSamples)).read_if(is_streamed);
  list.option("data.shard_order", data.shard_order);
  list.option("data.shard_by", data.shard_by).read_if(is_streamed);
  list.option("data.audit", data.audit).on_resume(OnResume::kMayChange);
  list.option("data.reshuffle", data.reshuffle);
  list.option("data.raw_layout", data.raw_layout);
  declare_synthetic(list, data.synthetic);
  declare_table(list, data.table);
}

// Keys of earlier versions, behind all others: see adopt_earlier_keys().
void declare_earlier(OptionList& list, EarlierValidation& earlier) {
  list.begin_section(OnResume::kMustStay);
  list.option("data.validation_share", earlier.share, from_to_below(0, 1)).earlier();
  const auto never = [](const Config&) { return false; };  // with data.fold they have become data.validation
  list.option("data.folds", earlier.folds, between(2, kMaxFolds)).read_if(never).earlier();
  list.option("data.fold", earlier.fold, between(1, kMaxFolds)).earlier();
  list.choice("data.fold_by", earlier.by, {"record", "class", "group", "time", "column"})
      .read_if(never)
      .earlier();
  list.option("data.fold_column", earlier.column).read_if(never).earlier();
}

void declare_model(OptionList& list, ModelOptions& model, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.option("model.layers", model.layers).most_used();
  list.choice("model.preset", model.preset, names.presets).alias("preset");
  list.option("model.outputs", model.outputs, between(1, kMaxWidth)).read_if([](const Config& c) {
    return !c.model.preset.empty();
  });
  list.choice("model.init", model.init, {"he", "xavier", "normal", "zero"});
  list.option("model.batch_norm", model.batch_norm).read_if(names.facts.has_batch_norm);
  list.option("model.init_std", model.init_std, above(0)).read_if([](const Config& c) {
    return c.model.init == "normal";
  });
}

void declare_loss(OptionList& list, LossOptions& loss, const KnownNames& names) {
  list.choice("train.loss", loss.loss, names.losses);
  list.option("train.label_smoothing", loss.label_smoothing, from_to_below(0, 1));
  list.option("train.huber_delta", loss.huber_delta, above(0));
  list.option("train.quantiles", loss.quantiles, above_to_below(0, 1));
  list.option("train.tweedie_power", loss.tweedie_power, above_to_below(1, 2));
  list.option("train.focal_gamma", loss.focal_gamma, between(0, 100));
  list.option("train.focal_alpha", loss.focal_alpha, above_to_below(0, 1));
}

void declare_optimizer(OptionList& list, OptimizerOptions& optimizer, const KnownNames& names) {
  list.choice("train.optimizer", optimizer.optimizer, names.optimizers).most_used();
  list.option("train.momentum", optimizer.momentum, from_to_below(0, 1));
  list.option("train.nesterov", optimizer.nesterov);
  list.option("train.beta1", optimizer.beta1, from_to_below(0, 1));
  list.option("train.beta2", optimizer.beta2, from_to_below(0, 1));
  list.option("train.epsilon", optimizer.epsilon, above(0));
  list.option("train.rho", optimizer.rho, from_to_below(0, 1));
  list.option("train.momentum_decay", optimizer.momentum_decay, at_least(0));
  list.option("train.beta2_decay", optimizer.beta2_decay, above(0));
  list.option("train.scale_parameter", optimizer.scale_parameter);
  list.option("train.adamw_lr_multiplier", optimizer.adamw_lr_multiplier, above(0));
  list.option("train.weight_decay", optimizer.weight_decay, at_least(0));
  list.option("train.lr_multiplier", optimizer.lr_multiplier);
  list.option("train.weight_decay_multiplier", optimizer.weight_decay_multiplier)
      .read_if([](const Config& c) { return c.optimizer.weight_decay > 0; });
  list.option("train.clip_norm", optimizer.clip_norm, at_least(0));
  list.option("train.clip_value", optimizer.clip_value, at_least(0));
}

void declare_schedule(OptionList& list, ScheduleOptions& schedule, const KnownNames& names) {
  list.option("train.lr", schedule.lr, above_up_to(0, 1e6)).most_used();
  list.choice("train.lr_scaling", schedule.lr_scaling, {"none", "linear", "sqrt"});
  list.option("train.lr_reference_batch", schedule.lr_reference_batch, between(1, kMaxBatch))
      .read_if([](const Config& c) { return c.schedule.lr_scaling != "none"; });
  list.choice("train.schedule", schedule.schedule, names.schedules);
  list.option("train.warmup", schedule.warmup);
  list.option("train.warmup_from", schedule.warmup_from, between(0, 1));
  list.option("train.decay_every", schedule.decay_every);
  list.option("train.milestones", schedule.milestones);
  list.option("train.decay_factor", schedule.decay_factor, above(0));
  list.option("train.decay_power", schedule.decay_power, above(0));
  list.option("train.warmup_share", schedule.warmup_share, from_to_below(0, 1));
  list.option("train.decay_share", schedule.decay_share, above_up_to(0, 1));
  list.option("train.plateau_patience", schedule.plateau_patience);
  list.option("train.plateau_min_delta", schedule.plateau_min_delta, at_least(0));
  list.option("train.end_lr", schedule.end_lr, between(0, 1e6));
}

void declare_model_selection(OptionList& list, TrainOptions& train) {
  list.choice("train.keep", train.keep, {"best", "last"})
      .on_resume(OnResume::kMayChange)
      .read_if(has_validation);
  list.option("train.early_stopping", train.early_stopping).read_if(has_validation);
  list.option("train.early_stopping_metric", train.early_stopping_metric).read_if(has_validation);
  list.option("train.early_stopping_min_delta", train.early_stopping_min_delta, at_least(0))
      .read_if([](const Config& c) { return !c.train.early_stopping.empty(); });
}

void declare_weight_average(OptionList& list, TrainOptions& train) {
  list.option("train.ema", train.ema, from_to_below(0, 1));
  list.option("train.swa_from", train.swa_from);
}

void declare_calibration(OptionList& list, TrainOptions& train) {
  list.choice("train.calibrate", train.calibrate, {kNoCalibration, "temperature"})
      .on_resume(OnResume::kMayChange);
}

void declare_train(OptionList& list, Config& config, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  declare_loss(list, config.loss, names);
  list.option("train.class_weights", config.train.class_weights);
  declare_optimizer(list, config.optimizer, names);
  declare_schedule(list, config.schedule, names);
  TrainOptions& train = config.train;
  list.option("train.init", train.init).on_resume(OnResume::kMayChange).alias("init");
  list.option("train.init_partial", train.init_partial)
      .on_resume(OnResume::kMayChange)
      .read_if([](const Config& c) { return !c.train.init.empty(); });
  list.option("train.epochs", train.epochs, above_up_to(0, 1e6)).most_used();
  list.option("train.steps", train.steps, between(1, kMaxSamples));
  list.option("train.samples", train.samples, between(1, kMaxSamples));
  list.option("train.global_batch", train.global_batch, between(1, kMaxBatch)).most_used();
  list.option("train.per_replica_batch", train.per_replica_batch, between(1, kMaxBatch));
  list.option("train.replicas", train.replicas, between(1, kMaxReplicas)).most_used();
  list.option("train.threads", train.threads, between(1, 1024)).on_resume(OnResume::kMayChange);
  list.option("train.accumulate", train.accumulate, between(1, kMaxBatch));
  list.option("train.precision", config.model.precision);
  list.option("train.tail", train.tail);
  list.option("train.on_nan", train.on_nan);
  list.option("train.skip_limit", train.skip_limit, at_least(1)).read_if([](const Config& c) {
    return c.train.on_nan == OnNan::kSkip;
  });
  declare_model_selection(list, train);
  declare_weight_average(list, train);
  declare_calibration(list, train);
}

void declare_eval(OptionList& list, EvalOptions& eval, const KnownNames& names) {
  list.begin_section(OnResume::kMayChange);
  list.option("eval.every", eval.every);
  list.option("eval.at_start", eval.at_start);
  list.option("eval.batch", eval.batch, between(1, kMaxBatch));
  list.option("eval.precise_bn", eval.precise_bn, between(0, 1e6))
      .on_resume(OnResume::kMustStay)
      .read_if(names.facts.has_batch_norm);
  list.option("eval.class_weights", eval.class_weights).read_if([](const Config& c) {
    return !c.train.class_weights.empty();
  });
  list.option("eval.top_k", eval.top_k, between(1, kMaxWidth));
  list.choices("eval.metrics", eval.metrics, names.metrics);
  list.option("eval.threshold", eval.threshold).takes_numbers();
}

void declare_checkpoint(OptionList& list, CheckpointOptions& checkpoint) {
  list.begin_section(OnResume::kMayChange);
  list.option("checkpoint.every", checkpoint.every);
  list.option("checkpoint.wait", checkpoint.wait);
  list.option("checkpoint.keep", checkpoint.keep, at_least(1));
  list.option("checkpoint.dir", checkpoint.dir);
}

void declare_report(OptionList& list, ReportOptions& report) {
  list.begin_section(OnResume::kMayChange);
  list.option("report.html", report.html);
  list.option("report.tensorboard", report.tensorboard);
  list.option("report.histograms", report.histograms).read_if([](const Config& c) {
    return c.report.tensorboard;
  });
  list.option("report.trace", report.trace);
}

void declare_local_steps(OptionList& list, DistOptions& distribute) {
  list.option("distribute.average_every", distribute.average_every, at_least(1));
  list.option("distribute.average_state", distribute.average_state);
  list.option("distribute.local_after", distribute.local_after);
  list.option("distribute.block_momentum", distribute.block_momentum, from_to_below(0, 1));
  list.option("distribute.block_lr", distribute.block_lr, above_up_to(0, 1e6));
  list.option("distribute.block_nesterov", distribute.block_nesterov).read_if([](const Config& c) {
    return c.distribute.block_momentum > 0;
  });
}

// How the model is divided among the ranks of a group.
void declare_stages(OptionList& list, DistOptions& distribute) {
  const auto divided = [](const Config& c) { return c.distribute.stages != 1; };
  list.count_or_auto("distribute.stages", distribute.stages, between(1, kMaxReplicas))
      .on_resume(OnResume::kMayChange);
  list.option("distribute.cut", distribute.cut)
      .takes_numbers()
      .on_resume(OnResume::kMayChange)
      .read_if(divided);
  list.option("distribute.schedule", distribute.schedule).on_resume(OnResume::kMayChange).read_if(divided);
  list.option("distribute.placement", distribute.placement).on_resume(OnResume::kMayChange).read_if(divided);
  list.option("distribute.memory_per_rank", distribute.memory_per_rank, between(0, 1e6))
      .alias("memory-per-rank")
      .on_resume(OnResume::kMayChange);
}

void declare_distribute(OptionList& list, DistOptions& distribute, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.choice("distribute.strategy", distribute.strategy, names.strategies).on_resume(OnResume::kIfAlike);
  list.option("distribute.reduction", distribute.reduction).most_used();
  list.choice("distribute.algorithm", distribute.algorithm, names.algorithms)
      .on_resume(OnResume::kMayChange)
      .read_if(names.facts.uses_algorithm)
      .about_exchange();
  list.option("distribute.calibrate", distribute.calibrate)
      .on_resume(OnResume::kMayChange)
      .read_if(names.facts.calibrates)
      .about_exchange();
  list.option("distribute.bucket_kib", distribute.bucket_kib, between(1, 1e9))
      .on_resume(OnResume::kMayChange)
      .about_exchange();
  list.option("distribute.progress_thread", distribute.progress_thread)
      .on_resume(OnResume::kMayChange)
      .about_exchange();
  list.option("distribute.servers", distribute.servers, between(1, kMaxReplicas))
      .on_resume(OnResume::kMayChange);
  list.option("distribute.mode", distribute.mode);
  list.option("distribute.staleness", distribute.staleness, between(0, 1e6)).read_if([](const Config& c) {
    return c.distribute.mode == ServerMode::kBounded;
  });
  list.option("distribute.backup_workers", distribute.backup_workers, between(0, kMaxReplicas));
  list.option("distribute.staleness_lr", distribute.staleness_lr).read_if([](const Config& c) {
    return c.distribute.mode != ServerMode::kSync;
  });
  list.option("distribute.record", distribute.record)
      .on_resume(OnResume::kMayChange)
      .read_if(names.facts.asynchronous);
  list.option("distribute.replay", distribute.replay)
      .on_resume(OnResume::kMayChange)
      .read_if(names.facts.asynchronous);
  list.option("distribute.timeout_seconds", distribute.timeout_seconds, above_up_to(0, 1e6))
      .on_resume(OnResume::kMayChange)
      .read_if(names.facts.asynchronous);
  list.choice("distribute.compression", distribute.compression, names.codecs).about_exchange();
  list.option("distribute.error_feedback", distribute.error_feedback).about_exchange();
  list.option("distribute.top_k", distribute.top_k, above_up_to(0, 1)).about_exchange();
  declare_local_steps(list, distribute);
  declare_stages(list, distribute);
}

void declare_comm(OptionList& list, CommOptions& comm) {
  list.begin_section(OnResume::kMayChange);
  list.option("comm.stall_seconds", comm.stall_seconds, between(0, 1e6));
  list.option("comm.abort_seconds", comm.abort_seconds, between(0, 1e6));
  list.option("comm.verify_every", comm.verify_every, at_least(0));
  list.option("comm.on_desync", comm.on_desync);
}

void declare_debug(OptionList& list, DebugOptions& debug) {
  list.begin_section(OnResume::kMayChange);
  list.option("debug.fail_rank", debug.fail_rank, at_least(0));
  list.option("debug.fail_step", debug.fail_step, at_least(0));
  list.option("debug.delay_rank", debug.delay_rank, at_least(0));
  list.option("debug.hang_rank", debug.hang_rank, at_least(0));
  list.option("debug.hang_step", debug.hang_step, at_least(0));
  list.option("debug.hang", debug.hang);
  list.option("debug.flip_rank", debug.flip_rank, at_least(0));
  list.option("debug.flip_step", debug.flip_step, at_least(0));
  list.option("debug.nan_replica", debug.nan_replica, at_least(0));
  list.option("debug.nan_step", debug.nan_step, at_least(0));
  list.option("debug.nan_steps", debug.nan_steps, at_least(1));
  list.option("debug.ranks_per_node", debug.ranks_per_node, at_least(1));
  list.option("debug.server_mbit", debug.server_mbit, at_least(0));
  list.option("debug.delay_ms", debug.delay_ms, at_least(0));
  list.option("debug.emulate_bf16", debug.emulate_bf16);
}

}  // namespace

std::vector<Option> declare_options(Config& config, const KnownNames& names) {
  OptionList list;
  declare_run(list, config.run);
  declare_data(list, config.data, names);
  declare_model(list, config.model, names);
  declare_train(list, config, names);
  declare_eval(list, config.eval, names);
  declare_checkpoint(list, config.checkpoint);
  declare_report(list, config.report);
  declare_distribute(list, config.distribute, names);
  declare_comm(list, config.comm);
  declare_debug(list, config.debug);
  declare_earlier(list, config.data.earlier);
  return list.take();
}

}  // namespace lockstep
