// The table of other programs' words. A word belongs here if users of those programs type it by habit and the
// nearest of our names by spelling would mislead them or not be found. Tests hold that every name and every
// key in a hint is declared, and that no word is one of ours.
#include "lockstep/base/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace lockstep {
namespace {

constexpr std::string_view kCpuOnly = "Lockstep trains on CPUs only: leave it out";
constexpr std::string_view kLayersHint =
    "Lockstep lists every layer in model.layers, such as \"dense(256) relu dropout(0.5) dense(10)\"";

constexpr auto kKeySynonyms = std::to_array<Synonym>({
    // data
    {"data data_path data_dir data_root dataset train_data training_data train_file train_path train_dir "
     "x_train data.path data.file data.files",
     "data.train"},
    {"y_train train_targets", "data.train_labels"},
    {"val val_data valid valid_data valid_sets validation_data val_path dev", "data.validation"},
    {"validation_split val_split val_size validation_fraction valid_fraction", "data.validation_share"},
    {"test_data test_path test_file x_test", "data.test"},
    {"target targets y label_column target_column label_col target_col class_column", "data.label"},
    {"sample_weight sample_weights weight_column weight_col instance_weight", "data.weight"},
    {"categorical_features categorical_feature categorical_columns cat_features cat_cols",
     "data.categorical"},
    {"numeric_features numerical_features numeric_columns numerical_columns num_cols", "data.numeric"},
    {"ignore_column ignore_columns drop_columns", "data.ignore"},
    {"has_header", "data.header"},
    {"sep delimiter delim field_delim", "data.separator"},
    {"na_values nan_values null_values", "data.missing_values"},
    {"one_hot encoding encoder", "data.encode"},
    {"scaler standardize feature_scaling", "data.scale"},
    {"normalize normalization", "data.mean",
     "Lockstep subtracts data.mean and divides by data.std; columns of tables are scaled by data.scale"},
    {"augmentation augmentations data_augmentation transform transforms", "data.augment"},
    {"num_workers dataloader_num_workers workers prefetch_factor prefetch_buffer num_parallel_calls",
     "data.prefetch",
     "Lockstep prepares data.prefetch steps ahead on one thread; mpirun -np sets the number of ranks"},
    {"shuffle_buffer_size buffer_size", "data.shuffle_buffer"},
    {"shuffle", "data.shard_order",
     "Lockstep shuffles in every epoch; data.shard_order and data.reshuffle say what"},
    // model
    {"hidden_layers hidden_units hidden_layer_sizes hidden_sizes hidden_size hidden_dim hidden layer_sizes "
     "num_layers n_layers activation activation_function dropout dropout_rate",
     "model.layers", kLayersHint},
    {"arch architecture model_name model_type backbone", "model.preset"},
    {"num_classes n_classes num_class num_labels output_size", "model.outputs",
     "the last layer has an output for each class, such as dense(10); only a preset has model.outputs"},
    {"kernel_initializer initializer weight_init", "model.init"},
    // train
    {"learning_rate learning_rate_init base_lr init_lr initial_lr eta eta0", "train.lr"},
    {"batch batch_size train_batch_size minibatch minibatch_size", "train.global_batch",
     "Lockstep has train.global_batch (samples per update over all replicas) and train.per_replica_batch "
     "(of each replica)"},
    {"micro_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size per_gpu_batch_size "
     "batch_size_per_gpu local_batch_size",
     "train.per_replica_batch"},
    {"num_epochs n_epochs num_train_epochs max_epochs max_epoch nb_epoch max_iter", "train.epochs"},
    {"num_steps max_steps total_steps train_steps iterations num_iterations max_iterations", "train.steps"},
    {"n_estimators num_boost_round num_leaves max_depth", "train.epochs",
     "Lockstep trains neural networks, not trees: model.layers is their size, train.epochs the length of the "
     "run"},
    {"gradient_accumulation_steps accumulation_steps accumulate_grad_batches grad_accum "
     "backward_passes_per_step",
     "train.accumulate",
     "Lockstep cuts the global batch into train.accumulate parts: train.global_batch counts all of them"},
    {"num_threads n_threads n_jobs nthread intra_op_parallelism_threads", "train.threads"},
    {"world_size num_ranks num_replicas num_replicas_in_sync nproc_per_node num_processes", "train.replicas",
     "mpirun -np sets the number of ranks; train.replicas fixes the workers that decide the numbers"},
    {"max_grad_norm grad_clip gradient_clipping gradient_clip_val clip_grad_norm global_clipnorm",
     "train.clip_norm"},
    {"l2 l2_reg reg_lambda lambda_l2 wd", "train.weight_decay"},
    {"betas", "train.beta1", "Lockstep has train.beta1 and train.beta2"},
    {"eps adam_epsilon", "train.epsilon"},
    {"use_nesterov nesterovs_momentum", "train.nesterov"},
    {"scheduler lr_scheduler lr_schedule lr_scheduler_type lr_decay", "train.schedule"},
    {"warmup_steps warmup_epochs num_warmup_steps warmup_ratio", "train.warmup",
     "Lockstep calls it train.warmup, with its unit: \"500 steps\" or \"5 epochs\""},
    {"step_size lr_step_size decay_steps", "train.decay_every",
     "Lockstep calls it train.decay_every, with its unit: \"500 steps\" or \"5 epochs\""},
    {"gamma lr_gamma decay_rate", "train.decay_factor"},
    {"min_lr lr_min eta_min end_learning_rate final_lr", "train.end_lr"},
    {"criterion loss_fn loss_function objective", "train.loss"},
    {"optim solver", "train.optimizer"},
    {"pretrained pretrained_weights init_weights init_model input_model weights_path", "train.init"},
    {"dtype amp mixed_precision fp16 bf16 half", "train.precision",
     "Lockstep calls it train.precision: \"fp32\" or \"bf16\""},
    {"drop_last drop_remainder", "train.tail", "Lockstep calls it train.tail: \"drop\" or \"keep\""},
    {"terminate_on_nan", "train.on_nan"},
    // eval, checkpoint and run
    {"eval_batch_size val_batch_size test_batch_size per_device_eval_batch_size eval.batch_size",
     "eval.batch"},
    {"metric scoring eval_metric", "eval.metrics"},
    {"eval_every eval_interval eval_steps eval_freq validation_freq check_val_every_n_epoch "
     "val_check_interval eval.every eval.interval",
     "eval.every_epochs"},
    {"save_every save_steps save_freq save_interval checkpoint_freq checkpoint_interval checkpoint.interval "
     "checkpoint.freq",
     "checkpoint.every"},
    {"save_total_limit max_to_keep", "checkpoint.keep"},
    {"save_best save_best_only load_best_model_at_end monitor", "checkpoint.best"},
    {"patience early_stopping early_stopping_rounds early_stopping_patience n_iter_no_change",
     "checkpoint.best",
     "Lockstep does not stop early: checkpoint.best keeps the checkpoint with the best value of a measure"},
    {"checkpoint_dir checkpoint_path ckpt_dir save_path checkpoint.path", "checkpoint.dir"},
    {"output_dir out_dir save_dir log_dir work_dir model_dir run_dir default_root_dir run.path run.output",
     "run.dir"},
    {"resume_from resume_from_checkpoint ckpt_path load_checkpoint", "run.resume"},
    {"random_state random_seed manual_seed rng_seed", "run.seed"},
    {"log_interval logging_steps log_freq print_freq log_every_n_steps steps_per_print", "run.log_every"},
    {"verbose verbosity progress_bar enable_progress_bar quiet silent", "run.progress"},
    {"max_time walltime", "run.time_limit"},
    {"device devices device_type gpu gpus num_gpus cuda use_cuda no_cuda use_gpu", "", kCpuOnly},
    // distribute
    {"distribution_strategy zero_optimization zero_stage tree_learner ddp_backend backend",
     "distribute.strategy",
     "ranks talk by MPI; distribute.strategy says how gradients become weights on all of them"},
    {"bucket_cap_mb bucket_size fusion_threshold reduce_bucket_size allreduce_bucket_size",
     "distribute.bucket_kib", "Lockstep calls it distribute.bucket_kib, in KiB"},
    {"wire distribute.wire grad_compression gradient_compression fp16_allreduce communication_data_type",
     "distribute.compression"},
    {"local_steps sync_every sync_interval", "distribute.average_every"},
    {"num_ps num_servers", "distribute.servers"},
    {"max_staleness staleness_bound", "distribute.staleness"},
});

constexpr auto kNameSynonyms = std::to_array<Synonym>({
    // losses, and metrics of the same words
    {"mse mse_loss l2 l2_loss squared_error regression rmse", "mean_squared_error"},
    {"mae l1 l1_loss smooth_l1 smooth_l1_loss huber_loss mean_absolute_error absolute_error", "huber",
     "Lockstep has 'huber', which is the absolute error above train.huber_delta"},
    {"mae l1", "mean_absolute_error"},
    {"ce cross_entropy cross_entropy_loss crossentropy categorical_crossentropy "
     "sparse_categorical_crossentropy nll nll_loss log_loss softmax multiclass multi_logloss",
     "softmax_cross_entropy"},
    {"bce bce_loss bce_with_logits bce_with_logits_loss binary binary_logloss logistic "
     "sigmoid_cross_entropy",
     "binary_cross_entropy"},
    {"roc_auc auroc roc_auc_score", "auc"},
    {"acc accuracy top_k_accuracy", "auc",
     "accuracy is always measured for classes; other metrics, such as 'auc', are named here"},
    {"binary_logloss nll", "log_loss"},
    {"r_squared r2_score", "r2"},
    // layers
    {"linear fc fully_connected ff", "dense",
     "Lockstep calls it 'dense', with the number of its outputs: dense(10)"},
    {"softmax log_softmax", "dense",
     "train.loss \"softmax_cross_entropy\" computes it: end with 'dense' and the number of classes"},
    {"conv convolution", "conv2d"},
    {"max_pool2d max_pooling max_pooling2d pool", "maxpool"},
    {"avg_pool2d average_pooling average_pooling2d", "avgpool"},
    {"gap adaptive_avg_pool2d global_avg_pool2d global_average_pooling2d", "global_avgpool"},
    {"bn batch_norm1d batch_norm2d batch_normalization sync_batch_norm", "batch_norm"},
    {"ln layer_normalization", "layer_norm"},
    {"drop dropout2d", "dropout"},
    {"swish", "silu"},
    {"embed embeddings", "embedding"},
    {"skip shortcut res_block", "residual"},
    {"cat concatenate", "concat"},
    {"reshape view", "flatten"},
    // optimizers and schedules
    {"momentum nesterov gd gradient_descent", "sgd", "Lockstep calls it 'sgd', with train.momentum"},
    {"amsgrad nadam adamax", "adam"},
    {"lars", "lamb", "Lockstep has 'lamb' for large batches"},
    {"none fixed", "constant"},
    {"step_lr multistep multistep_lr piecewise", "step"},
    {"cosine_annealing cosine_annealing_lr cosine_decay cosine_with_warmup one_cycle one_cycle_lr", "cosine"},
    {"linear linear_lr linear_decay poly polynomial_lr polynomial_decay", "polynomial",
     "Lockstep calls it 'polynomial'; with train.decay_power = 1 it is a straight line"},
    // initialisers and presets
    {"kaiming kaiming_normal kaiming_uniform he_normal he_uniform", "he"},
    {"glorot glorot_uniform glorot_normal xavier_uniform xavier_normal", "xavier"},
    {"gaussian random_normal truncated_normal", "normal"},
    {"resnet resnet18 resnet50", "resnet20"},
    {"wide_and_deep", "wide_deep"},
    // data formats and export formats
    {"tsv table text txt pandas", "csv"},
    {"svmlight svm", "libsvm"},
    {"mnist ubyte fashion_mnist", "idx"},
    {"npy npz np", "numpy"},
    {"h5 hdf", "hdf5"},
    {"binary bin", "raw"},
    {"random fake generated", "synthetic"},
    {"pt pth torch pytorch state_dict", "safetensors",
     "PyTorch reads 'safetensors', with safetensors.torch.load_file"},
    {"numpy npy", "npz"},
    // strategies, algorithms and compressions
    {"ddp horovod distributed_data_parallel data_parallel mirrored mirrored_strategy multi_worker_mirrored "
     "multi_worker_mirrored_strategy tpu_strategy collective",
     "allreduce"},
    {"central_storage_strategy", "central_storage"},
    {"zero zero2 zero3 fsdp fully_sharded_data_parallel deepspeed zero_redundancy_optimizer", "zero1",
     "Lockstep has 'zero1', which divides the state of the optimizer among the ranks"},
    {"ps param_server parameter_server_strategy", "parameter_server"},
    {"fedavg federated post_local_sgd model_averaging diloco", "local_sgd"},
    {"nccl gloo", "mpi"},
    {"half float16", "fp16"},
    {"bfloat16", "bf16"},
    {"float float32 full", "fp32"},
    {"dgc sparse", "top_k"},
    // commands, and sections of the config
    {"evaluate", "eval"},
    {"infer inference", "predict"},
    {"benchmark", "bench"},
    {"optimizer optim solver training loss", "train", "losses, optimizers and schedules are keys of [train]"},
    {"dataset datasets dataloader", "data"},
    {"network", "model"},
    {"validation evaluation", "eval"},
    {"distributed strategy parallel", "distribute"},
    {"logging output", "run"},
});

bool has_word(const Synonym& synonym, std::string_view wanted) {
  std::string_view rest = synonym.words;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (same_spelling(word, wanted)) return true;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::span<const Synonym> key_synonyms() {
  return kKeySynonyms;
}

std::span<const Synonym> name_synonyms() {
  return kNameSynonyms;
}

bool same_spelling(std::string_view a, std::string_view b) {
  const auto skip = [](std::string_view& text) {
    while (!text.empty() && (text.front() == '_' || text.front() == '-')) text.remove_prefix(1);
  };
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (skip(a), skip(b); !a.empty() && !b.empty(); skip(a), skip(b)) {
    if (lower(a.front()) != lower(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && b.empty();
}

const Synonym* find_key_synonym(std::string_view key) {
  for (const std::string_view word : {key, key.substr(key.rfind('.') + 1)}) {
    for (const Synonym& synonym : kKeySynonyms) {
      if (has_word(synonym, word)) return &synonym;
    }
  }
  return nullptr;
}

const Synonym* find_name_synonym(std::string_view word, std::span<const std::string> known) {
  for (const Synonym& synonym : kNameSynonyms) {
    if (has_word(synonym, word) && std::ranges::find(known, synonym.name) != known.end()) return &synonym;
  }
  return nullptr;
}

std::string describe(const Synonym& synonym, std::string_view prefix) {
  if (!synonym.hint.empty()) return std::string(synonym.hint);
  return fmt::format("Lockstep calls it '{}{}'", prefix, synonym.name);
}

}  // namespace lockstep
