#include "declare_comm.h"
#include "declare_data.h"
#include "declare_debug.h"
#include "declare_run.h"

namespace lockstep {
namespace {

void declare_model(OptionList& list, ModelOptions& model, const KnownNames& names) {
  Option& layers = list.option("model.layers", model.layers,
                               "The layers, from the input on, such as \"dense(256) relu dense(10)\"");
  layers.if_not_given = "preset";
  layers.expected = "one text such as \"dense(256) relu dense(10)\"";
  list.choice("model.preset", model.preset, "A well-known model instead of layers of one's own",
              names.presets)
      .if_not_given = "layers";
  list.option("model.outputs", model.outputs, "Outputs of the preset: classes, or numbers to predict",
              between(1, kMaxWidth));
  list.choice("model.init", model.init, "Random numbers that the weights start from",
              {"he", "xavier", "normal", "zero"});
  list.option("model.batch_norm", model.batch_norm,
              "Whose samples batch norm normalises with: local (the replica's own), averaged (the same, but "
              "running moments of all replicas), sync (all replicas), group(G) (groups of G neighbouring "
              "replicas)");
  list.option("model.init_std", model.init_std, "Standard deviation of the weights with init 'normal'",
              above(0));
}

void declare_optimizer(OptionList& list, OptimizerOptions& optimizer, const KnownNames& names) {
  list.choice("train.optimizer", optimizer.optimizer, "How a gradient becomes a change of the weights",
              names.optimizers);
  list.option("train.momentum", optimizer.momentum, "Share of the last change that the next one keeps",
              from_to_below(0, 1));
  list.option("train.nesterov", optimizer.nesterov, "Take the gradient where the momentum leads");
  list.option("train.beta1", optimizer.beta1, "Decay per step of the mean of the gradients",
              from_to_below(0, 1));
  list.option("train.beta2", optimizer.beta2, "Decay per step of the mean of their squares",
              from_to_below(0, 1));
  list.option("train.epsilon", optimizer.epsilon,
              "Added to the root of the mean square, so that no division is by zero", above(0));
  list.option("train.rho", optimizer.rho, "Decay per step of the mean of the squared gradients (rmsprop)",
              from_to_below(0, 1));
  list.option("train.weight_decay", optimizer.weight_decay,
              "Pull of the weights towards zero; biases are spared; 0 is off", at_least(0));
  list.option("train.clip_norm", optimizer.clip_norm,
              "Longest gradient, as the norm over all weights: a longer one is scaled down to it; 0 is off",
              at_least(0));
}

void declare_schedule(OptionList& list, ScheduleOptions& schedule, const KnownNames& names) {
  list.option("train.lr", schedule.lr, "Learning rate before scaling and schedule, per step",
              above_up_to(0, 1e6));
  list.choice("train.lr_scaling", schedule.lr_scaling,
              "Multiplies train.lr by global batch / train.lr_reference_batch, or by the root of that",
              {"none", "linear", "sqrt"});
  list.option("train.lr_reference_batch", schedule.lr_reference_batch,
              "Samples per step that train.lr was chosen for", between(1, kMaxBatch));
  list.choice("train.schedule", schedule.schedule, "How the learning rate goes on after the warm-up",
              names.schedules);
  list.option("train.warmup", schedule.warmup,
              "Time over which the learning rate rises to its peak: \"5 epochs\", \"500 steps\", \"64000 "
              "samples\"");
  list.option("train.warmup_from", schedule.warmup_from, "Share of the peak that the warm-up starts from",
              between(0, 1));
  list.option("train.decay_every", schedule.decay_every,
              "Time between two falls of the learning rate with schedule 'step', as in train.warmup");
  list.option("train.decay_factor", schedule.decay_factor,
              "Multiplies the learning rate at each fall of schedule 'step'", above(0));
  list.option("train.decay_power", schedule.decay_power,
              "Power of schedule 'polynomial'; 1 is a straight line", above(0));
  list.option("train.end_lr", schedule.end_lr,
              "Learning rate at the end of the run with schedules 'polynomial' and 'cosine'",
              between(0, 1e6));
}

void declare_train(OptionList& list, Config& config, const KnownNames& names) {
  list.choice("train.loss", config.loss.loss, "What training makes small", names.losses);
  list.option("train.label_smoothing", config.loss.label_smoothing,
              "Share of each label that is spread over all classes", from_to_below(0, 1));
  list.option("train.huber_delta", config.loss.huber_delta,
              "Error above which the Huber loss grows as a line, in units of the target", above(0));
  declare_optimizer(list, config.optimizer, names);
  declare_schedule(list, config.schedule, names);
  TrainOptions& train = config.train;
  Option& init = list.option("train.init", train.init,
                             "File of weights (safetensors) that the run starts from instead of random ones");
  init.alias = "init";
  init.if_not_given = "model.init";
  list.option("train.init_partial", train.init_partial,
              "Take the tensors of train.init that fit the model and start the others at random, instead of "
              "refusing a file with missing, surplus or misshapen ones");
  list.option("train.epochs", train.epochs,
              "Length of the run in epochs: passes over the data, by all replicas together with data.mode "
              "'shard', by each of them with 'full'",
              above_up_to(0, 1e6))
      .if_not_given = "steps or samples";
  list.option("train.steps", train.steps, "Length of the run in updates of the weights",
              between(1, kMaxSamples))
      .if_not_given = "epochs or samples";
  list.option("train.samples", train.samples, "Length of the run in samples, over all replicas",
              between(1, kMaxSamples))
      .if_not_given = "epochs or steps";
  list.option("train.global_batch", train.global_batch, "Samples per update, over all replicas",
              between(1, kMaxBatch))
      .if_not_given = "per_replica_batch";
  list.option("train.per_replica_batch", train.per_replica_batch,
              "Samples per update and replica: the global batch divided by the replicas",
              between(1, kMaxBatch))
      .if_not_given = "global_batch";
  list.option("train.replicas", train.replicas,
              "Logical workers, which alone decide the numbers; fix them to get the same on any rank count",
              between(1, kMaxReplicas))
      .if_not_given = "one per worker rank and thread";
  list.option("train.threads", train.threads, "Threads of a rank, which share its replicas",
              between(1, 1024));
  list.option("train.accumulate", train.accumulate,
              "Parts that the batch of a step is cut into, to need less memory; the update stays the same "
              "but for rounding, except with batch norm, which normalises each part by itself",
              between(1, kMaxBatch));
  list.option("train.precision", config.model.precision,
              "What dense and conv2d multiply in, in training as in evaluation: bf16 rounds what they "
              "multiply to 8 bits of precision; weights, sums and all else stay fp32. bf16 needs a CPU with "
              "instructions for it and oneDNN");
  list.option("train.tail", train.tail,
              "Samples after the last full batch of an epoch: keep them as a short batch, or drop them");
  list.option("train.on_nan", train.on_nan,
              "A step whose loss or gradient is not finite: stop ends the run (exit code 5); skip leaves the "
              "step out on all ranks, warns and counts");
  list.option("train.skip_limit", train.skip_limit,
              "Steps in all that on_nan 'skip' leaves out before it ends the run after all", at_least(1));
}

void declare_eval(OptionList& list, EvalOptions& eval, const KnownNames& names) {
  list.option("eval.every_epochs", eval.every_epochs,
              "Epochs between two evaluations on the validation data (the test data if there is none)",
              above(0));
  list.option("eval.batch", eval.batch,
              "Samples evaluated at a time; changes memory, and of the loss the last digits",
              between(1, kMaxBatch));
  list.option(
      "eval.precise_bn", eval.precise_bn,
      "Training batches, from the first of the run on and at most all, over which the running moments of "
      "batch norm are computed anew before each evaluation and at the end; 0 keeps the moving average",
      between(0, 1e6));
  list.option("eval.top_k", eval.top_k, "A guess counts in top-k when the label is among this many best",
              between(1, kMaxWidth));
  list.choices("eval.metrics", eval.metrics, "Measured beside loss and accuracy, such as \"auc\"",
               names.metrics)
      .if_not_given = "all that suit the targets; none with more than two classes";
}

void declare_distribute(OptionList& list, DistOptions& distribute, const KnownNames& names) {
  list.choice(
      "distribute.strategy", distribute.strategy,
      "How gradients become weights on all ranks; auto: central_storage where all ranks share one node and "
      "no key about how gradients travel is given, else allreduce",
      names.strategies);
  list.option("distribute.reduction", distribute.reduction,
              "native: gradients are added in whatever order is fast; ordered: along one fixed tree, so that "
              "any rank count gives the same bits");
  list.choice("distribute.algorithm", distribute.algorithm,
              "How the sum of the gradients gets to all ranks, where all get the whole sum; auto: what is "
              "fastest here for each size of bucket (with ordered reduction the numbers are the same)",
              names.algorithms);
  list.option("distribute.calibrate", distribute.calibrate,
              "Measure at the start what is fastest, which takes 0.15 s or a few exchanges by each "
              "algorithm; else auto takes "
              "memory where ranks share it (shared, hierarchical), and mpi where they do not");
  list.option("distribute.bucket_kib", distribute.bucket_kib,
              "Gradient that travels together, in KiB; small buckets start earlier, large ones cost less",
              between(1, 1e9));
  list.option("distribute.progress_thread", distribute.progress_thread,
              "A helper thread moves messages on, where a core is to spare; needs MPI_THREAD_MULTIPLE");
  list.option("distribute.servers", distribute.servers, "Ranks that are parameter servers: the last ones",
              between(1, kMaxReplicas));
  list.option("distribute.mode", distribute.mode,
              "When the servers take a step: sync, with the gradients of all workers; async, with each "
              "gradient as it arrives; bounded, the same, but no worker is far ahead of the slowest");
  list.option(
      "distribute.staleness", distribute.staleness,
      "Gradients that a worker may be ahead of the slowest with mode 'bounded'; further ahead it waits",
      between(0, 1e6));
  list.option("distribute.backup_workers", distribute.backup_workers,
              "Workers whose gradients a step of mode 'sync' does not wait for: the last to arrive are "
              "dropped, and counted",
              between(0, kMaxReplicas));
  list.option("distribute.staleness_lr", distribute.staleness_lr,
              "Divide the learning rate of a gradient by its staleness: the steps that others took since its "
              "weights were pulled");
  list.option("distribute.record", distribute.record,
              "Write down the order in which servers hear from workers, into arrivals.*.txt in run.dir");
  list.option("distribute.replay", distribute.replay,
              "Directory with the arrivals.*.txt of a recorded run, to be repeated bit for bit")
      .if_not_given = "as they arrive";
  list.option("distribute.timeout_seconds", distribute.timeout_seconds,
              "Seconds without a sign of life from a worker or server after which the run ends with its name",
              above_up_to(0, 1e6));
  list.choice("distribute.compression", distribute.compression,
              "How gradients travel between ranks (central_storage: between nodes); weights always travel as "
              "they are",
              names.codecs);
  list.option("distribute.error_feedback", distribute.error_feedback,
              "What a message loses on lossy compression is kept and added to the next one");
  list.option("distribute.top_k", distribute.top_k,
              "Share of the numbers of a gradient that travel with compression 'top_k'", above_up_to(0, 1));
}

void declare_local_steps(OptionList& list, DistOptions& distribute) {
  list.option("distribute.average_every", distribute.average_every,
              "Steps that each replica takes alone before the weights of all are averaged", at_least(1));
  list.option("distribute.average_state", distribute.average_state,
              "Average the state of the optimizer with the weights; else each replica keeps its own");
  list.option("distribute.local_after", distribute.local_after,
              "Time during which all replicas still take each step together, as in train.warmup: post-local "
              "SGD");
  list.option("distribute.block_momentum", distribute.block_momentum,
              "Share of the last change of the average that the next one keeps; 0 is off",
              from_to_below(0, 1));
  list.option("distribute.block_lr", distribute.block_lr,
              "Share of the way from the last average to the next that is gone", above_up_to(0, 1e6));
  list.option("distribute.block_nesterov", distribute.block_nesterov,
              "Start the next local steps where the block momentum leads");
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
  declare_distribute(list, config.distribute, names);
  declare_local_steps(list, config.distribute);
  declare_comm(list, config.comm);
  declare_debug(list, config.debug);
  return list.take();
}

}  // namespace lockstep
