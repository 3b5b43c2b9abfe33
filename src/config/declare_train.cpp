#include "declare_sections.h"

namespace lockstep {
namespace {

void declare_loss(OptionList& list, LossOptions& loss, const KnownNames& names) {
  list.choice("train.loss", loss.loss, "What training makes small", names.losses)
      .synonyms("criterion loss_fn loss_function objective");
  list.option("train.label_smoothing", loss.label_smoothing,
              "Share of each label that is spread over all classes", from_to_below(0, 1));
  list.option("train.huber_delta", loss.huber_delta,
              "Error above which the Huber loss grows as a line, in units of the target", above(0));
  list.option("train.quantiles", loss.quantiles,
              "Levels that the quantile loss predicts, in rising order; the model has an output for each of "
              "them, of the first target first",
              above_to_below(0, 1))
      .example("0.1,0.5,0.9")
      .synonyms("quantile quantile_alpha quantile_levels tau taus")
      .synonyms("alpha",
                "Lockstep has train.quantiles (levels of the quantile loss), train.focal_alpha and "
                "train.huber_delta");
  list.option("train.tweedie_power", loss.tweedie_power,
              "Power of the mean that the variance of a target grows with (Tweedie loss): near 1 as for "
              "counts, near 2 as for amounts",
              above_to_below(1, 2))
      .synonyms("tweedie_variance_power variance_power");
  list.option("train.focal_gamma", loss.focal_gamma,
              "How much less a sample counts in the focal losses the better it is predicted: its loss is "
              "multiplied by (1 - probability)^gamma; 0 is cross entropy",
              between(0, 100));
  list.option("train.focal_alpha", loss.focal_alpha,
              "Weight of yes in the binary focal loss; that of no is 1 - alpha", above_to_below(0, 1))
      .if_not_given("both weigh 1");
}

void declare_optimizer(OptionList& list, OptimizerOptions& optimizer, const KnownNames& names) {
  list.choice("train.optimizer", optimizer.optimizer, "How a gradient becomes a change of the weights",
              names.optimizers)
      .most_used()
      .synonyms("optim solver");
  list.option("train.momentum", optimizer.momentum, "Share of the last change that the next one keeps",
              from_to_below(0, 1))
      .if_not_given("0; 0.95 with muon");
  list.option("train.nesterov", optimizer.nesterov, "Take the gradient where the momentum leads")
      .synonyms("use_nesterov nesterovs_momentum");
  list.option("train.beta1", optimizer.beta1, "Decay per step of the mean of the gradients",
              from_to_below(0, 1))
      .synonyms("betas", "Lockstep has train.beta1 and train.beta2");
  list.option("train.beta2", optimizer.beta2,
              "Decay per step of the mean of their squares; with lion, of the mean that it remembers",
              from_to_below(0, 1))
      .if_not_given("0.999; 0.99 with lion");
  list.option("train.epsilon", optimizer.epsilon,
              "Added to the root of the mean square, so that no division is by zero", above(0))
      .synonyms("eps adam_epsilon");
  list.option("train.rho", optimizer.rho, "Decay per step of the mean of the squared gradients (rmsprop)",
              from_to_below(0, 1));
  list.option("train.momentum_decay", optimizer.momentum_decay,
              "Speed at which the momentum of nadam rises to train.beta1; with 0 it is always half of that",
              at_least(0));
  list.option("train.beta2_decay", optimizer.beta2_decay,
              "adafactor's decay of the mean of the squares is 1 - t^-beta2_decay in step t", above(0));
  list.option("train.scale_parameter", optimizer.scale_parameter,
              "Multiply the learning rate by the root mean square of each tensor's weights, at least 0.001 "
              "(adafactor)")
      .synonyms("multiply_by_parameter_scale")
      .synonyms(
          "relative_step",
          "Lockstep has train.scale_parameter (times the size of each tensor's weights); a rate that falls "
          "with time is train.schedule");
  list.option("train.adamw_lr_multiplier", optimizer.adamw_lr_multiplier,
              "Learning rate of the tensors that muon leaves to AdamW, as a multiple of train.lr", above(0));
  list.option("train.weight_decay", optimizer.weight_decay,
              "Pull of the weights towards zero; biases are spared; 0 is off", at_least(0))
      .synonyms("l2 l2_reg reg_lambda lambda_l2 wd");
  list.option(
          "train.lr_multiplier", optimizer.lr_multiplier,
          "Factors on the learning rate of some tensors, \"PATTERN: FACTOR\" each: a pattern is a name as "
          "in the model file, in which * stands for any text, or one of bias, norm, embedding. Of several "
          "that fit a tensor the last one counts; 0 freezes it")
      .if_not_given("1 for all tensors")
      .example("bias: 2,0.*: 0.1")
      .synonyms(
          "lr_mult layer_lr parameter_groups param_groups params freeze frozen freeze_layers trainable "
          "requires_grad",
          "Lockstep calls it train.lr_multiplier = [\"0.*: 0.1\", \"bias: 2\"]; a factor of 0 freezes");
  list.option("train.weight_decay_multiplier", optimizer.weight_decay_multiplier,
              "Factors on the weight decay of some tensors, as in train.lr_multiplier")
      .read_if("train.weight_decay", [](const Config& c) { return c.optimizer.weight_decay > 0; })
      .if_not_given("0 for biases and the tensors of normalisation layers, 1 for all others")
      .example("embedding: 0,bias: 1")
      .synonyms("decay_mult no_decay exclude_from_weight_decay",
                "Lockstep calls it train.weight_decay_multiplier = [\"embedding: 0\"]");
  list.option("train.clip_norm", optimizer.clip_norm,
              "Longest gradient, as the norm over all weights: a longer one is scaled down to it; 0 is off",
              at_least(0))
      .synonyms("max_grad_norm grad_clip gradient_clipping gradient_clip_val clip_grad_norm global_clipnorm");
  list.option("train.clip_value", optimizer.clip_value,
              "Clips each number of the mean gradient to [-clip_value, clip_value], before train.clip_norm; "
              "0 is off",
              at_least(0))
      .synonyms("clip_grad_value gradient_clip_value");
}

void declare_schedule(OptionList& list, ScheduleOptions& schedule, const KnownNames& names) {
  list.option("train.lr", schedule.lr, "Learning rate before scaling and schedule, per step",
              above_up_to(0, 1e6))
      .most_used()
      .synonyms("learning_rate learning_rate_init base_lr init_lr initial_lr eta eta0");
  list.choice("train.lr_scaling", schedule.lr_scaling,
              "Multiplies train.lr by global batch / train.lr_reference_batch, or by the root of that",
              {"none", "linear", "sqrt"});
  list.option("train.lr_reference_batch", schedule.lr_reference_batch,
              "Samples per step that train.lr was chosen for", between(1, kMaxBatch))
      .read_if("train.lr_scaling = \"linear\" or \"sqrt\"",
               [](const Config& c) { return c.schedule.lr_scaling != "none"; });
  list.choice("train.schedule", schedule.schedule, "How the learning rate goes on after the warm-up",
              names.schedules)
      .synonyms("scheduler lr_scheduler lr_schedule lr_scheduler_type lr_decay");
  list.option("train.warmup", schedule.warmup,
              "Time over which the learning rate rises to its peak: \"5 epochs\", \"500 steps\", \"64000 "
              "samples\"")
      .example("5 epochs")
      .synonyms("warmup_steps warmup_epochs num_warmup_steps warmup_ratio",
                "Lockstep calls it train.warmup, with its unit: \"500 steps\" or \"5 epochs\"");
  list.option("train.warmup_from", schedule.warmup_from, "Share of the peak that the warm-up starts from",
              between(0, 1));
  list.option("train.decay_every", schedule.decay_every,
              "Time between two falls of the learning rate with schedule 'step', and time in which it falls "
              "once with 'exponential'; as in train.warmup")
      .example("30 epochs")
      .synonyms("step_size lr_step_size decay_steps",
                "Lockstep calls it train.decay_every, with its unit: \"500 steps\" or \"5 epochs\"");
  list.option("train.milestones", schedule.milestones,
              "Times of the run, warm-up included, at which the learning rate falls with schedule "
              "'milestones'; as in train.warmup")
      .if_not_given("none, which schedule 'milestones' refuses")
      .example("30 epochs,60 epochs")
      .synonyms("lr_milestones lr_steps boundaries",
                "Lockstep calls it train.milestones, with units: [\"30 epochs\", \"60 epochs\"]");
  list.option(
          "train.decay_factor", schedule.decay_factor,
          "Multiplies the learning rate at each fall of schedules 'step', 'milestones' and 'plateau', and "
          "over each decay_every of 'exponential'",
          above(0))
      .synonyms("lr_gamma decay_rate")
      .synonyms("gamma", "Lockstep has train.decay_factor (schedules) and train.focal_gamma (focal losses)");
  list.option("train.decay_power", schedule.decay_power,
              "Power of schedules 'polynomial' and 'wsd'; 1 is a straight line", above(0));
  list.option("train.warmup_share", schedule.warmup_share,
              "Share of the run over which schedule 'one_cycle' rises to the peak", from_to_below(0, 1))
      .synonyms("pct_start");
  list.option("train.decay_share", schedule.decay_share,
              "Share of the run after the warm-up, at its end, over which the learning rate falls with "
              "schedule 'wsd'",
              above_up_to(0, 1))
      .synonyms("cooldown cooldown_fraction cooldown_steps num_decay_steps",
                "Lockstep calls it train.decay_share: 0.2 is the last fifth of the run");
  list.option(
          "train.plateau_patience", schedule.plateau_patience,
          "Time without a better evaluation of the validation set after which schedule 'plateau' falls: in "
          "evaluations, epochs, steps or samples")
      .example("5 evaluations")
      .synonyms("lr_patience reduce_lr_patience scheduler_patience",
                "Lockstep calls it train.plateau_patience, with its unit: \"5 evaluations\" or \"5 epochs\"");
  list.option("train.plateau_min_delta", schedule.plateau_min_delta,
              "Change of train.early_stopping_metric which counts as better for schedule 'plateau'",
              at_least(0));
  list.option("train.end_lr", schedule.end_lr,
              "Learning rate at the end of the run with schedules 'polynomial', 'cosine', 'one_cycle' and "
              "'wsd'; lowest one with 'plateau'",
              between(0, 1e6))
      .synonyms("min_lr lr_min eta_min end_learning_rate final_lr");
}

constexpr std::string_view kValidationSet =
    "a validation set: add validation_share = 0.1 to [data], or name a file in data.validation";

void declare_model_selection(OptionList& list, TrainOptions& train) {
  list.choice("train.keep", train.keep,
              "The weights that model.safetensors holds: those of the best evaluation of the validation set, "
              "or the last ones. The checkpoint of the best evaluation is kept, too",
              {"best", "last"})
      .if_not_given("best, with a validation set; else last")
      .on_resume(OnResume::kMayChange)
      .read_if(kValidationSet, has_validation)
      .synonyms("save_best save_best_only load_best_model_at_end restore_best_weights checkpoint.best");
  list.option(
          "train.early_stopping", train.early_stopping,
          "Time without a better evaluation of the validation set after which the run ends: in evaluations, "
          "epochs, steps or samples")
      .if_not_given("all steps are made")
      .read_if(kValidationSet, has_validation)
      .example("5 epochs")
      .synonyms(
          "patience early_stop early_stopping_rounds early_stopping_round early_stopping_patience "
          "n_iter_no_change",
          "Lockstep calls it train.early_stopping, with its unit: \"5 epochs\" or \"5 evaluations\"");
  list.option(
          "train.early_stopping_metric", train.early_stopping_metric,
          "The measure by which evaluations are compared, for train.keep, train.early_stopping and schedule "
          "'plateau': \"loss\", \"accuracy\", or one of eval.metrics")
      .read_if(kValidationSet, has_validation)
      .example("auc")
      .synonyms("monitor metric_for_best_model first_metric_only");
  list.option("train.early_stopping_min_delta", train.early_stopping_min_delta,
              "Change of that measure which counts as better for train.early_stopping; train.keep takes any",
              at_least(0))
      .read_if("train.early_stopping", [](const Config& c) { return !c.train.early_stopping.empty(); })
      .synonyms("min_delta early_stopping_threshold tol");
}

void declare_weight_average(OptionList& list, TrainOptions& train) {
  list.option(
          "train.ema", train.ema,
          "Exponential moving average of the weights, after each step, which is evaluated and kept in their "
          "place: its decay, which rises to this number as the smaller of it and (1 + steps) / (10 + "
          "steps); 0 is off",
          from_to_below(0, 1))
      .synonyms("ema_decay use_ema ema_momentum model_ema model_ema_decay ema_rate polyak_averaging")
      .synonyms("averaging average_weights model_averaging",
                "Lockstep has train.ema (exponential) and train.swa_from (uniform)");
  list.option("train.swa_from", train.swa_from,
              "Stochastic weight averaging: from this time on, the mean of the weights after each epoch and "
              "after the last step is evaluated and kept in place of the weights")
      .if_not_given("no such average")
      .example("15 epochs")
      .synonyms("swa swa_start swa_epoch_start swa_start_epoch stochastic_weight_avg",
                "Lockstep calls it train.swa_from, with its unit: \"15 epochs\"");
}

void declare_calibration(OptionList& list, TrainOptions& train) {
  list.choice(
          "train.calibrate", train.calibrate,
          "After training, make probabilities come true as often as they say: \"temperature\" divides the "
          "outputs of the kept weights by the number that gives the validation set the least log loss "
          "(Guo et al. 2017). It is kept in model.safetensors; eval, predict and the ONNX export apply it",
          {kNoCalibration, "temperature"})
      .on_resume(OnResume::kMayChange)
      .synonyms("calibration calibrated temperature_scaling",
                "Lockstep calls it train.calibrate = \"temperature\"");
}

}  // namespace

void declare_train(OptionList& list, Config& config, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  declare_loss(list, config.loss, names);
  list.option(
          "train.class_weights", config.train.class_weights,
          "How many times a training sample of each class counts, in the loss and its gradient: balanced "
          "(samples / (classes * samples of the class), as in scikit-learn), or a number of 0 or more for "
          "each class by name or number, as in [\"ham: 1\", \"spam: 5\"]; multiplied with the weights of "
          "the samples")
      .if_not_given("all classes count alike")
      .example("ham: 1,spam: 5")
      .synonyms("class_weight is_unbalance auto_class_weights")
      .synonyms("pos_weight scale_pos_weight",
                "Lockstep has weights for both classes: train.class_weights = [\"0: 1\", \"1: 5\"] for 5, or "
                "\"balanced\"");
  declare_optimizer(list, config.optimizer, names);
  declare_schedule(list, config.schedule, names);
  TrainOptions& train = config.train;
  list.option("train.init", train.init,
              "File of weights (safetensors) that the run starts from instead of random ones")
      .on_resume(OnResume::kMayChange)
      .synonyms("pretrained pretrained_weights init_weights init_model input_model weights_path")
      .alias("init")
      .if_not_given("model.init");
  list.option("train.init_partial", train.init_partial,
              "Take the tensors of train.init that fit the model and start the others at random, instead of "
              "refusing a file with missing, surplus or misshapen ones")
      .on_resume(OnResume::kMayChange)
      .read_if("train.init", [](const Config& c) { return !c.train.init.empty(); });
  list.option("train.epochs", train.epochs,
              "Length of the run in epochs: passes over the data, by all replicas together with data.mode "
              "'shard', by each of them with 'full'",
              above_up_to(0, 1e6))
      .if_not_given("steps or samples")
      .most_used()
      .synonyms("num_epochs n_epochs num_train_epochs max_epochs max_epoch nb_epoch max_iter")
      .synonyms("n_estimators num_boost_round num_leaves max_depth",
                "Lockstep trains neural networks, not trees: model.layers is their size, train.epochs the "
                "length of the run");
  list.option("train.steps", train.steps, "Length of the run in updates of the weights",
              between(1, kMaxSamples))
      .if_not_given("epochs or samples")
      .synonyms("num_steps max_steps total_steps train_steps iterations num_iterations max_iterations");
  list.option("train.samples", train.samples, "Length of the run in samples, over all replicas",
              between(1, kMaxSamples))
      .if_not_given("epochs or steps");
  list.option("train.global_batch", train.global_batch, "Samples per update, over all replicas",
              between(1, kMaxBatch))
      .if_not_given("per_replica_batch")
      .most_used()
      .synonyms("batch batch_size train_batch_size minibatch minibatch_size",
                "Lockstep has train.global_batch (samples per update over all replicas) and "
                "train.per_replica_batch (of each replica)");
  list.option("train.per_replica_batch", train.per_replica_batch,
              "Samples per update and replica: the global batch divided by the replicas",
              between(1, kMaxBatch))
      .if_not_given("global_batch")
      .synonyms(
          "micro_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size per_gpu_batch_size "
          "batch_size_per_gpu local_batch_size");
  list.option("train.replicas", train.replicas,
              "Logical workers, which alone decide the numbers; fix them to get the same on any rank count",
              between(1, kMaxReplicas))
      .if_not_given("one per worker rank and thread")
      .most_used()
      .synonyms(
          "world_size num_ranks num_replicas num_replicas_in_sync nproc_per_node num_processes",
          "mpirun -np sets the number of ranks; train.replicas fixes the workers that decide the numbers");
  list.option("train.threads", train.threads, "Threads of a rank, which share its replicas", between(1, 1024))
      .on_resume(OnResume::kMayChange)
      .synonyms("num_threads n_threads n_jobs nthread intra_op_parallelism_threads");
  list.option("train.accumulate", train.accumulate,
              "Parts that the batch of a step is cut into, to need less memory; the update stays the same "
              "but for rounding, except with batch norm, which normalises each part by itself",
              between(1, kMaxBatch))
      .synonyms(
          "gradient_accumulation_steps accumulation_steps accumulate_grad_batches grad_accum "
          "backward_passes_per_step",
          "Lockstep cuts the global batch into train.accumulate parts: train.global_batch counts all of "
          "them");
  list.option("train.precision", config.model.precision,
              "What dense and conv2d multiply in, in training as in evaluation: bf16 rounds what they "
              "multiply to 8 bits of precision; weights, sums and all else stay fp32. bf16 needs a CPU with "
              "instructions for it and oneDNN")
      .synonyms("dtype amp mixed_precision fp16 bf16 half",
                "Lockstep calls it train.precision: \"fp32\" or \"bf16\"");
  list.option("train.tail", train.tail,
              "Samples after the last full batch of an epoch: keep them as a short batch, or drop them")
      .synonyms("drop_last drop_remainder", "Lockstep calls it train.tail: \"drop\" or \"keep\"");
  list.option("train.on_nan", train.on_nan,
              "A step whose loss or gradient is not finite: stop ends the run (exit code 5); skip leaves the "
              "step out on all ranks, warns and counts")
      .synonyms("terminate_on_nan");
  list.option("train.skip_limit", train.skip_limit,
              "Steps in all that on_nan 'skip' leaves out before it ends the run after all", at_least(1))
      .read_if("train.on_nan = \"skip\"", [](const Config& c) { return c.train.on_nan == OnNan::kSkip; });
  declare_model_selection(list, train);
  declare_weight_average(list, train);
  declare_calibration(list, train);
}

void declare_eval(OptionList& list, EvalOptions& eval, const KnownNames& names) {
  list.begin_section(OnResume::kMayChange);
  list.option(
          "eval.every", eval.every,
          "Time between two evaluations of the validation set (the test set if there is none), in epochs, "
          "steps or samples; \"never\": only at the end")
      .example("500 steps")
      .synonyms(
          "eval.every_epochs eval_every eval_interval eval_steps eval_freq validation_freq "
          "check_val_every_n_epoch val_check_interval eval.interval",
          "Lockstep calls it eval.every, with its unit: \"1 epoch\" or \"500 steps\"");
  list.option("eval.at_start", eval.at_start,
              "Evaluate before the first step, too; it counts as every evaluation for train.keep and "
              "train.early_stopping")
      .synonyms("eval_on_start eval_at_start eval_before_training num_sanity_val_steps");
  list.option("eval.batch", eval.batch,
              "Samples evaluated at a time; changes memory, and of the loss the last digits",
              between(1, kMaxBatch))
      .synonyms("eval_batch_size val_batch_size test_batch_size per_device_eval_batch_size eval.batch_size");
  list.option(
          "eval.precise_bn", eval.precise_bn,
          "Training batches, from the first of the run on and at most all, over which the running moments of "
          "batch norm are computed anew before each evaluation and at the end; 0 keeps the moving average",
          between(0, 1e6))
      .on_resume(OnResume::kMustStay)
      .read_if("a batch_norm layer in the model", names.facts.has_batch_norm);
  list.option("eval.class_weights", eval.class_weights,
              "Count each sample in the loss and the metrics of an evaluation as often as its class says in "
              "train.class_weights")
      .read_if("train.class_weights", [](const Config& c) { return !c.train.class_weights.empty(); });
  list.option("eval.top_k", eval.top_k, "A guess counts in top-k when the label is among this many best",
              between(1, kMaxWidth));
  list.choices("eval.metrics", eval.metrics, "Measured beside loss and accuracy, such as \"auc\"",
               names.metrics)
      .if_not_given("the usual ones for the targets; none with more than two classes")
      .example("auc,log_loss")
      .synonyms("metric scoring eval_metric");
  list.option("eval.threshold", eval.threshold,
              "The probability from which on a model of yes or no says yes: a number, or \"f1\", "
              "\"balanced_accuracy\" or \"youden\", by which the best one is chosen on the validation set at "
              "the end of the run. It is kept with the model, for predict and eval")
      .if_not_given("yes where it is more probable than no")
      .takes_numbers()
      .expected("\"f1\", \"balanced_accuracy\", \"youden\" or a number from 0 to 1")
      .example("f1")
      .synonyms("decision_threshold classification_threshold probability_threshold cutoff");
}

}  // namespace lockstep
