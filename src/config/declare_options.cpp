#include "declare_sections.h"

namespace lockstep {
namespace {

bool is_divided(const Config& config) {
  return config.folds.fold > 0;
}

}  // namespace

std::vector<Option> declare_options(Config& config, const KnownNames& names) {
  OptionList list;
  declare_run(list, config.run);
  declare_data(list, config.data, names);
  declare_folds(list, config.folds);
  declare_model(list, config.model, names);
  declare_train(list, config, names);
  declare_eval(list, config.eval, names);
  declare_checkpoint(list, config.checkpoint);
  declare_report(list, config.report);
  declare_distribute(list, config.distribute, names);
  declare_comm(list, config.comm);
  declare_debug(list, config.debug);
  return list.take();
}

void declare_comm(OptionList& list, CommOptions& comm) {
  list.begin_section(OnResume::kMayChange);
  list.option("comm.stall_seconds", comm.stall_seconds,
              "Seconds that a rank waits for others before one report names those that did not come; 0: "
              "automatic, 60 or 20 times the longest step so far, whichever is more",
              between(0, 1e6));
  list.option("comm.abort_seconds", comm.abort_seconds,
              "Seconds after that report before the whole job ends with exit code 7; 0: never",
              between(0, 1e6));
  list.option("comm.verify_every", comm.verify_every,
              "Steps between two comparisons of what all ranks must hold the same (weights, optimizer "
              "state), by a hash that takes about 0.1 ms for each MB; 0: never",
              at_least(0));
  list.option("comm.on_desync", comm.on_desync,
              "When they differ: stop ends the run (exit code 4); rebroadcast gives all ranks the state of "
              "the majority, warns and counts");
}

void declare_debug(OptionList& list, DebugOptions& debug) {
  list.begin_section(OnResume::kMayChange);
  list.option("debug.fail_rank", debug.fail_rank, "Rank that fails on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.fail_step", debug.fail_step, "Step before which it fails", at_least(0));
  list.option("debug.delay_rank", debug.delay_rank, "Rank that is slowed down on purpose, for tests",
              at_least(0))
      .if_not_given("no rank");
  list.option("debug.hang_rank", debug.hang_rank, "Rank that hangs on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.hang_step", debug.hang_step, "Step before which it hangs", at_least(0));
  list.option("debug.hang", debug.hang,
              "How it hangs: loop computes for ever; skip leaves out a barrier that the others call");
  list.option("debug.flip_rank", debug.flip_rank,
              "Rank on which a bit of the weights is flipped on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.flip_step", debug.flip_step, "Step after which it is flipped", at_least(0));
  list.option("debug.nan_replica", debug.nan_replica, "Replica whose loss is NaN on purpose, for tests",
              at_least(0))
      .if_not_given("no replica");
  list.option("debug.nan_step", debug.nan_step, "First step in which it is", at_least(0));
  list.option("debug.nan_steps", debug.nan_steps, "In so many steps", at_least(1));
  list.option(
          "debug.ranks_per_node", debug.ranks_per_node,
          "Takes each node for several of so many ranks, to test on one machine what happens between nodes",
          at_least(1))
      .if_not_given("nodes as they are");
  list.option(
      "debug.server_mbit", debug.server_mbit,
      "Parameter servers behave as on a link of so many Mbit/s each, where workers are asynchronous; 0 "
      "is off",
      at_least(0));
  list.option("debug.delay_ms", debug.delay_ms, "Milliseconds that it sleeps in each step", at_least(0));
  list.option("debug.emulate_bf16", debug.emulate_bf16,
              "Run train.precision bf16 where the CPU or the back end has none, for tests and to measure "
              "accuracy: 3 to 20 times slower than fp32, and other last digits than those of a CPU that has "
              "it");
}

void declare_folds(OptionList& list, FoldOptions& folds) {
  list.option(
          "data.folds", folds.folds,
          "Folds that the training samples are divided into; `trainer cv` trains with each as validation set",
          between(2, kMaxFolds))
      .if_not_given("none")
      .read_if("data.fold", is_divided)
      .synonyms("n_folds nfold n_splits k_folds num_folds cv_folds",
                "Lockstep calls it data.folds; trainer cv --folds 5 trains with each");
  list.option("data.fold", folds.fold, "The fold that is the validation set, counted from 1",
              between(1, kMaxFolds))
      .if_not_given("no fold is held back");
  list.choice("data.fold_by", folds.by,
              "How samples become folds: record (by chance), class (as many of each class in each), group "
              "(those with one value of a column together), time (each fold comes after those that it is "
              "trained on), or column (a column names the fold)",
              {"record", "class", "group", "time", "column"})
      .read_if("data.fold", is_divided)
      .synonyms("stratified stratify group_kfold time_series_split",
                "Lockstep calls it data.fold_by = \"class\", \"group\" or \"time\"");
  list.option(
          "data.fold_column", folds.column,
          "The column that data.fold_by group, time and column read, of a table; no feature, but for time")
      .if_not_given("none")
      .read_if("data.fold_by group, time or column",
               [](const Config& config) { return is_divided(config) && config.folds.reads_column(); })
      .synonyms("fold_col group_col groups time_col");
}

void declare_model(OptionList& list, ModelOptions& model, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.option("model.layers", model.layers,
              "The layers, from the input on, such as \"dense(256) relu dense(10)\"")
      .most_used()
      .example("conv2d(32,3,padding=1) relu maxpool(2) flatten dense(10)")
      .synonyms(
          "hidden_layers hidden_units hidden_layer_sizes hidden_sizes hidden_size hidden_dim hidden "
          "layer_sizes num_layers n_layers activation activation_function dropout dropout_rate",
          "Lockstep lists every layer in model.layers, such as \"dense(256) relu dropout(0.5) "
          "dense(10)\"")
      .if_not_given("preset")
      .expected("one text such as \"dense(256) relu dense(10)\"");
  list.choice("model.preset", model.preset, "A well-known model instead of layers of one's own",
              names.presets)
      .alias("preset")
      .if_not_given("layers")
      .synonyms("arch architecture model_name model_type backbone");
  list.option("model.outputs", model.outputs, "Outputs of the preset: classes, or numbers to predict",
              between(1, kMaxWidth))
      .read_if("model.preset", [](const Config& c) { return !c.model.preset.empty(); })
      .synonyms(
          "num_classes n_classes num_class num_labels output_size",
          "the last layer has an output for each class, such as dense(10); only a preset has model.outputs");
  list.choice("model.init", model.init, "Random numbers that the weights start from",
              {"he", "xavier", "normal", "zero"})
      .synonyms("kernel_initializer initializer weight_init");
  list.option("model.batch_norm", model.batch_norm,
              "Whose samples batch norm normalises with: local (the replica's own), averaged (the same, but "
              "running moments of all replicas), sync (all replicas), group(G) (groups of G neighbouring "
              "replicas)")
      .read_if("a batch_norm layer in the model", names.facts.has_batch_norm)
      .example("group(4)");
  list.option("model.init_std", model.init_std, "Standard deviation of the weights with init 'normal'",
              above(0))
      .read_if("model.init = \"normal\"", [](const Config& c) { return c.model.init == "normal"; });
}

void declare_report(OptionList& list, ReportOptions& report) {
  list.begin_section(OnResume::kMayChange);
  list.option("report.html", report.html,
              "Write report.html into run.dir at the end of the run: a page that shows what was trained and "
              "how well, as trainer report does")
      .synonyms("html_report report_html write_report");
  list.option("report.tensorboard", report.tensorboard,
              "Write event files for TensorBoard into run.dir/tensorboard as the run goes on: losses, "
              "metrics, rate, throughput, shares of the time, staleness, and the config as hyperparameters")
      .synonyms("use_tensorboard tensorboard_dir tensorboard_log logger.tensorboard");
  list.option("report.histograms", report.histograms,
              "Put histograms of the weights and of the gradients of each tensor into the event files, "
              "wherever a line of metrics has norms")
      .synonyms("histogram_freq log_histograms watch_gradients")
      .read_if("report.tensorboard", [](const Config& c) { return c.report.tensorboard; });
  list.option("report.trace", report.trace,
              "Record these steps of all ranks and threads as a timeline, trace.json.gz in run.dir, for "
              "ui.perfetto.dev or chrome://tracing: the first and the last of the run, and the slowest")
      .if_not_given("no timeline")
      .example("first 20, last 20, slowest 20 steps")
      .synonyms("profile profiler use_profiler profile_steps timeline torch_profiler");
}

void declare_run(OptionList& list, RunOptions& run) {
  list.begin_section(OnResume::kMayChange);
  list.option("run.dir", run.dir,
              "Directory of the run and its checkpoints; a run that is in it already goes on")
      .if_not_given("required to train")
      .most_used()
      .synonyms(
          "output_dir out_dir save_dir log_dir work_dir model_dir run_dir default_root_dir run.path "
          "run.output");
  list.option(
          "run.resume", run.resume,
          "Where to go on from: auto (the newest whole checkpoint of run.dir, or its start), never (run.dir "
          "must be new), restart (the start: what is in run.dir is moved to the first of DIR.1, DIR.2, ... "
          "that is free), or the directory of a run or of one checkpoint")
      .example("runs/first")
      .synonyms("resume_from resume_from_checkpoint ckpt_path load_checkpoint");
  list.option("run.resume_allow", run.resume_allow,
              "Keys that may differ from those of the run that goes on, though they change the experiment")
      .if_not_given("none")
      .example("train.lr");
  list.option("run.time_limit", run.time_limit,
              "Time after which the run is ended by force, such as \"55 minutes\", or as Slurm writes it, "
              "such as \"1-12:00:00\" or \"UNLIMITED\": the run saves itself and stops before")
      .if_not_given("that of the Slurm job")
      .example("55 minutes")
      .synonyms("max_time walltime");
  list.option("run.seed", run.seed, "Seed of all random numbers: weights, order of samples, synthetic data",
              at_least(0))
      .on_resume(OnResume::kMustStay)
      .synonyms("random_state random_seed manual_seed rng_seed");
  list.option("run.progress", run.progress,
              "How training is shown: a live line, plain lines, nothing, or what suits the terminal")
      .synonyms("verbose verbosity progress_bar enable_progress_bar quiet silent");
  list.option("run.plan", run.plan,
              "How much of the plan is printed at the start of a run: the model and what a step and an epoch "
              "are, or every row of it; plan.txt in run.dir has all of it in any case")
      .alias("plan");
  list.option("run.log_every", run.log_every, "Steps between two lines of metrics", at_least(1))
      .synonyms("log_interval logging_steps log_freq print_freq log_every_n_steps steps_per_print");
}

void declare_checkpoint(OptionList& list, CheckpointOptions& checkpoint) {
  list.begin_section(OnResume::kMayChange);
  list.option(
          "checkpoint.every", checkpoint.every,
          "Time between two checkpoints: \"500 steps\", \"2000000 samples\", \"1 epoch\", \"10 minutes\", or "
          "\"never\"; with any but never there is one at the end too")
      .example("10 minutes")
      .synonyms(
          "save_every save_steps save_freq save_interval checkpoint_freq checkpoint_interval "
          "checkpoint.interval checkpoint.freq");
  list.option(
      "checkpoint.wait", checkpoint.wait,
      "Let training wait for a checkpoint that is still being written when the next is due; else the next is "
      "left out");
  list.option("checkpoint.keep", checkpoint.keep, "Checkpoints that are kept, the newest ones", at_least(1))
      .synonyms("save_total_limit max_to_keep");
  list.option("checkpoint.dir", checkpoint.dir,
              "Directory of the checkpoints, of this run alone: one with the checkpoints of another run is "
              "refused")
      .if_not_given("checkpoints, in run.dir")
      .synonyms("checkpoint_dir checkpoint_path ckpt_dir save_path checkpoint.path");
}

}  // namespace lockstep
