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

constexpr auto kNameSynonyms = std::to_array<Synonym>({
    // losses, and metrics of the same words
    {"rmse neg_root_mean_squared_error", "root_mean_squared_error"},
    {"mse mse_loss l2 l2_loss squared_error regression reg:squarederror", "mean_squared_error"},
    {"mape", "mean_absolute_percentage_error"},
    {"mae l1 l1_loss absolute_error regression_l1 reg:absoluteerror", "mean_absolute_error"},
    {"smooth_l1 smooth_l1_loss huber_loss reg:pseudohubererror", "huber"},
    {"quantile_loss quantile_regression pinball pinball_loss reg:quantileerror", "quantile",
     "Lockstep calls it 'quantile', with train.quantiles"},
    {"quantile quantile_loss pinball_loss mean_pinball_loss", "pinball"},
    {"count:poisson poisson_nll poisson_nll_loss", "poisson"},
    {"mean_poisson_deviance poisson_nloglik", "poisson_deviance"},
    {"reg:tweedie tweedie_loss", "tweedie", "Lockstep calls it 'tweedie', with train.tweedie_power"},
    {"mean_tweedie_deviance tweedie_nloglik", "tweedie_deviance"},
    {"reg:gamma gamma_nll gamma_loss", "gamma"},
    {"mean_gamma_deviance gamma_nloglik", "gamma_deviance"},
    {"cosine cosine_loss cosine_similarity cosine_embedding_loss", "cosine_distance"},
    {"cosine", "cosine_similarity"},
    {"focal focal_loss sigmoid_focal_loss binary_focal_crossentropy", "binary_focal",
     "Lockstep has 'binary_focal' (yes or no) and 'softmax_focal' (classes), with train.focal_gamma"},
    {"categorical_focal_crossentropy", "softmax_focal"},
    {"hinge hinge_loss binary:hinge", "binary_hinge",
     "Lockstep has 'binary_hinge' (yes or no) and 'multiclass_hinge' (classes)"},
    {"categorical_hinge multi_margin multi_margin_loss crammer_singer", "multiclass_hinge"},
    {"ce cross_entropy cross_entropy_loss crossentropy categorical_crossentropy "
     "sparse_categorical_crossentropy nll nll_loss log_loss softmax multiclass multi_logloss multi:softmax "
     "multi:softprob",
     "softmax_cross_entropy"},
    {"bce bce_loss bce_with_logits bce_with_logits_loss binary binary_logloss logistic "
     "sigmoid_cross_entropy binary:logistic reg:logistic",
     "binary_cross_entropy"},
    {"roc_auc auroc roc_auc_score", "auc"},
    {"acc accuracy top_k_accuracy", "auc",
     "accuracy is always measured for classes; other metrics, such as 'auc', are named here"},
    {"binary_logloss nll", "log_loss"},
    {"r_squared r2_score", "r2"},
    {"auprc pr_auc aucpr ap average_precision_score", "average_precision"},
    {"brier_score brier_score_loss", "brier"},
    {"calibration_error expected_calibration_error", "ece"},
    {"f1_score f1_macro", "f1"},
    {"matthews_corrcoef matthews_correlation phi", "mcc"},
    {"balanced_accuracy_score bacc", "balanced_accuracy"},
    {"spearmanr spearman_rho rank_correlation rank_ic", "spearman"},
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
    {"amsgrad adamax", "adam"},
    {"lars", "lamb", "Lockstep has 'lamb' for large batches"},
    {"none fixed", "constant"},
    {"step_lr staircase", "step"},
    {"multistep multistep_lr piecewise piecewise_constant piecewise_constant_decay", "milestones"},
    {"exponential_lr exponential_decay exp", "exponential"},
    {"cosine_annealing cosine_annealing_lr cosine_decay cosine_with_warmup", "cosine"},
    {"one_cycle_lr 1cycle one_cycle_policy", "one_cycle"},
    {"inverse_square_root inv_sqrt rsqrt noam", "inverse_sqrt"},
    {"warmup_stable_decay trapezoid trapezoidal", "wsd"},
    {"reduce_lr_on_plateau reduce_on_plateau", "plateau"},
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

}  // namespace

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

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (same_spelling(word, wanted)) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

const Synonym* find_name_synonym(std::string_view word, std::span<const std::string> known) {
  for (const Synonym& synonym : kNameSynonyms) {
    if (has_word(synonym.words, word) && std::ranges::find(known, synonym.name) != known.end())
      return &synonym;
  }
  return nullptr;
}

std::string describe(const Synonym& synonym) {
  if (!synonym.hint.empty()) return std::string(synonym.hint);
  return fmt::format("Lockstep calls it '{}'", synonym.name);
}

}  // namespace lockstep
