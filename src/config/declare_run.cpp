#include "declare_sections.h"

namespace lockstep {

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
