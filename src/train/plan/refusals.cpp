#include "lockstep/train/plan/refusals.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::span<const Refusal> refusals() {
  static const std::array kRows{
      Refusal{"as many servers as ranks, or more",
              "a server hosts no replica, so nobody would train: start more ranks, or lower "
              "distribute.servers",
              [](const Combination& c) { return c.workers() < 1; }},
      Refusal{"ordered reduction with asynchronous workers (mode async or bounded, or backup workers)",
              "gradients count in the order in which they arrive, so there is no fixed order of the sum: set "
              "distribute.reduction = \"native\", or distribute.mode = \"sync\" without backup workers",
              [](const Combination& c) {
                return is_asynchronous(c.distribute) && c.distribute.reduction == Reduction::kOrdered;
              }},
      Refusal{
          "batch norm over several replicas with asynchronous workers",
          "replicas would have to synchronise in every layer, but they are never at the same step: set "
          "model.batch_norm to local or averaged, or distribute.mode = \"sync\" without backup workers",
          [](const Combination& c) { return is_asynchronous(c.distribute) && c.normalises_over_replicas; }},
      Refusal{"backup workers with mode async or bounded",
              "there no step waits for anybody: remove distribute.backup_workers, or set distribute.mode = "
              "\"sync\"",
              [](const Combination& c) {
                return is_asynchronous(c.distribute) && c.distribute.backup_workers > 0 &&
                       c.distribute.mode != ServerMode::kSync;
              }},
      Refusal{"as many backup workers as workers, or more",
              "a step would take nobody's gradient: lower distribute.backup_workers, or start more ranks",
              [](const Combination& c) {
                return is_asynchronous(c.distribute) && c.distribute.backup_workers >= c.workers();
              }},
      Refusal{"asynchronous workers with different numbers of replicas",
              "each of their gradients makes a step, and steps are to be of one size: make train.replicas a "
              "multiple of the workers",
              [](const Combination& c) {
                return is_asynchronous(c.distribute) && c.replicas % c.workers() != 0;
              }},
      Refusal{
          "asynchronous workers with a global batch that does not divide by the replicas",
          "each of their gradients makes a step, and steps are to be of one size: make train.global_batch "
          "a multiple of train.replicas",
          [](const Combination& c) { return is_asynchronous(c.distribute) && c.batch % c.replicas != 0; }},
      Refusal{
          "asynchronous workers without a record of their own",
          "a worker without data has no gradient to push: set data.mode = \"full\", or lower "
          "train.replicas to at most the rows",
          [](const Combination& c) { return is_asynchronous(c.distribute) && c.replicas_without_rows > 0; }},
      Refusal{"error feedback on lossy compression with backup workers",
              "what a message makes up for is lost with a gradient that is dropped: set "
              "distribute.error_feedback = false, or use distribute.compression fp32",
              [](const Combination& c) {
                return is_asynchronous(c.distribute) && c.distribute.backup_workers > 0 &&
                       c.distribute.error_feedback && make_codec(c.distribute) != nullptr;
              }},
      Refusal{
          "ordered reduction with lossy compression",
          "ordered promises the same bits on any number of ranks, but what a message loses depends on "
          "which rank adds which replicas: use distribute.compression fp32, or distribute.reduction native",
          [](const Combination& c) {
            return c.distribute.reduction == Reduction::kOrdered && make_codec(c.distribute) != nullptr;
          }},
      Refusal{"ordered reduction with algorithm ring or rabenseifner",
              "they add in the order in which ranks pass numbers on, not along the fixed tree: use "
              "distribute.algorithm mpi, shared, hierarchical or auto, which all give the same bits",
              [](const Combination& c) {
                return uses_algorithm(c.distribute) && c.distribute.algorithm != kAutoAlgorithm &&
                       !find_entry(algorithm_catalog(), "algorithm", c.distribute.algorithm)
                            .allows(c.distribute.reduction);
              }},
      Refusal{"local_sgd with lossy compression",
              "weights are sent, of which a message must lose nothing: use distribute.compression "
              "fp32, and raise distribute.average_every for fewer bytes",
              [](const Combination& c) {
                return local_sums(c.distribute) == LocalSums::kPerReplica &&
                       make_codec(c.distribute) != nullptr;
              }},
      Refusal{"local_sgd with batch norm averaged, sync or group",
              "the replicas do not synchronise in each step, so each has the moments of its own samples "
              "only: choose model.batch_norm local, or layer_norm",
              [](const Combination& c) {
                return local_sums(c.distribute) == LocalSums::kPerReplica &&
                       (c.normalises_over_replicas || c.moments_of_all_replicas);
              }},
      Refusal{
          "train.on_nan skip with asynchronous workers",
          "the servers have given permission for a gradient that would never come, and the steps of the run "
          "would not be as many as planned: set train.on_nan = \"stop\", or distribute.mode = \"sync\" "
          "without backup workers",
          [](const Combination& c) { return c.skips_bad_steps && is_asynchronous(c.distribute); }},
      Refusal{"train.on_nan skip with local_sgd",
              "a replica that leaves out a step which the others take is no equal part of the next average: "
              "set train.on_nan = \"stop\", or use another strategy",
              [](const Combination& c) {
                return c.skips_bad_steps && local_sums(c.distribute) == LocalSums::kPerReplica;
              }},
      Refusal{"train.on_nan skip with error feedback on lossy compression",
              "what a message makes up for later would hold the bad number: set distribute.error_feedback = "
              "false, or use distribute.compression fp32",
              [](const Combination& c) {
                return c.skips_bad_steps && c.distribute.error_feedback &&
                       make_codec(c.distribute) != nullptr;
              }},
      Refusal{"train.ema with train.swa_from",
              "there is one average of the weights that is evaluated and kept: remove train.swa_from for the "
              "exponential one, or train.ema for the uniform one",
              [](const Combination& c) { return c.two_averages; }},
      Refusal{"train.ema with asynchronous workers or local_sgd",
              "there is no step after which all weights are those of one model: servers step each for "
              "itself, and replicas of local_sgd differ between two averages. Use train.swa_from, which "
              "averages the weights at the ends of epochs, or another strategy",
              [](const Combination& c) {
                return c.averages_each_step &&
                       (is_asynchronous(c.distribute) || local_sums(c.distribute) == LocalSums::kPerReplica);
              }},
      Refusal{"train.per_replica_batch without train.replicas",
              "the global batch, and with it the run, would change with the number of ranks: give "
              "train.replicas, or train.global_batch instead",
              [](const Combination& c) { return c.batch_follows_replicas; }},
      Refusal{"data.validation with data.validation_share",
              "there is one validation set: name its file, or hold back a share of the training samples",
              [](const Combination& c) { return c.two_validation_sets; }},
      Refusal{"data.validation_labels or data.validation_weights with a part of the training samples",
              "its labels and weights are those of the training samples: remove them, or name a file in "
              "data.validation",
              [](const Combination& c) { return c.labels_beside_held_part; }},
      Refusal{"train.schedule plateau without a validation set",
              "the learning rate falls when the validation set gets no better: add validation_share = 0.1 to "
              "[data], or name a file in data.validation",
              [](const Combination& c) { return c.follows_nothing; }},
      Refusal{"train.class_weights with a loss on numbers",
              "there are no classes to weigh: remove train.class_weights, or weigh records by data.weight or "
              "data.train_weights",
              [](const Combination& c) { return c.weighs_numbers; }},
      Refusal{
          "train.class_weights with several targets of yes or no",
          "a record is of several classes there, and has one weight: remove train.class_weights, or weigh "
          "records by data.weight or data.train_weights",
          [](const Combination& c) { return c.weighs_several; }},
      Refusal{"data.fold with data.validation or data.validation_share",
              "there is one validation set, and the fold is it: remove the others",
              [](const Combination& c) { return c.fold_and_validation_set; }},
      Refusal{"train.calibrate without a validation set",
              "the temperature is fitted to samples that training has not learned from: add validation_share "
              "= 0.1 to [data], or name a file in data.validation",
              [](const Combination& c) { return c.calibrates_on_nothing; }},
      Refusal{"train.calibrate with a loss that gives no probabilities",
              "a temperature makes probabilities come true as often as they say: remove train.calibrate, or "
              "set train.loss = \"softmax_cross_entropy\" (classes) or \"binary_cross_entropy\" (yes or no)",
              [](const Combination& c) { return c.calibrates_values; }},
      Refusal{
          "eval.threshold by a measure without a validation set",
          "the threshold is chosen on the validation set: add validation_share = 0.1 to [data], or name a "
          "file in data.validation, or give a number, such as eval.threshold = 0.3",
          [](const Combination& c) { return c.threshold_from_nowhere; }},
      Refusal{"eval.threshold with a model that does not say one yes or no",
              "it is the probability from which on the answer is yes: remove eval.threshold, or train on one "
              "label of two classes (train.loss = \"binary_cross_entropy\", or a last layer dense(2))",
              [](const Combination& c) { return c.threshold_of_others; }},
      Refusal{"eval.threshold with a hinge loss",
              "its outputs are margins, not probabilities: remove eval.threshold, or set train.loss = "
              "\"binary_cross_entropy\"",
              [](const Combination& c) { return c.threshold_of_scores; }},
      Refusal{
          "data.audit with train.tail drop, or with asynchronous workers",
          "samples are left out on purpose there, which the audit would report: set train.tail = \"keep\" "
          "and distribute.mode = \"sync\" without backup workers, or remove data.audit",
          [](const Combination& c) { return c.audits && (c.drops_tail || is_asynchronous(c.distribute)); }},
      Refusal{"data.reshuffle global with a data.shard_order that is not shuffled",
              "it assigns the samples anew in each epoch, by chance: set data.shard_order = \"shuffled\", or "
              "data.reshuffle = \"shard\"",
              [](const Combination& c) {
                return c.reshuffle == Reshuffle::kGlobal && c.shard_order != ShardOrder::kShuffled;
              }},
      Refusal{"data.shard_order strided with streamed samples",
              "every replica would read the whole data set: set data.memory = \"load\", or another "
              "data.shard_order",
              [](const Combination& c) { return c.streamed && c.shard_order == ShardOrder::kStrided; }},
      Refusal{"distribute.stages with a number of ranks that it does not divide",
              "each group of ranks holds the whole model, one stage on each: start a multiple of "
              "distribute.stages ranks, or change distribute.stages",
              [](const Combination& c) { return c.divided() && c.world % c.distribute.stages != 0; },
              [](const Combination& c) {
                return fmt::format("{} rank{} and {} stages", c.world, c.world == 1 ? "" : "s",
                                   c.distribute.stages);
              }},
      Refusal{"distribute.stages with parameter servers",
              "servers own the weights of whole models: set distribute.strategy = \"zero1\" or "
              "\"allreduce\", or distribute.stages = 1",
              [](const Combination& c) { return c.divided() && c.servers > 0; }},
      Refusal{
          "distribute.stages with local_sgd",
          "a group takes its replicas one after the other through the same weights, and local_sgd gives each "
          "replica its own: use allreduce, zero1 or central_storage, or set distribute.stages = 1",
          [](const Combination& c) {
            return c.divided() && local_sums(c.distribute) == LocalSums::kPerReplica;
          }},
      Refusal{
          "distribute.stages with lossy compression",
          "what messages lose is kept by rank and bucket of the whole model: set distribute.compression = "
          "\"fp32\", or distribute.stages = 1",
          [](const Combination& c) { return c.divided() && make_codec(c.distribute) != nullptr; }},
      Refusal{"distribute.stages with several threads",
              "a stage takes one micro-batch after the other: set train.threads = 1, and start more ranks",
              [](const Combination& c) { return c.divided() && c.threads > 1; }},
      Refusal{
          "distribute.stages with batch norm sync or group and a schedule that is not gpipe",
          "replicas meet at each such layer, so a stage has to take all of them up to it before the first "
          "one "
          "goes back: set distribute.schedule = \"gpipe\", or model.batch_norm = \"local\" or \"averaged\"",
          [](const Combination& c) {
            return c.divided() && c.normalises_over_replicas &&
                   c.distribute.schedule != PipelineSchedule::kGpipe;
          }},
      Refusal{"layers with split=rows on several ranks with strategy zero1 and distribute.stages",
              "the ranks of a stage are in groups of their own: set distribute.stages = 1, or use another "
              "strategy, with which each rank computes these layers by itself",
              [](const Combination& c) { return c.divides_layers && c.divided(); }},
      Refusal{"layers with split=rows on several ranks with strategy zero1 and lossy compression",
              "samples and outputs of these layers are sent, of which a message must lose nothing: set "
              "distribute.compression = \"fp32\", or remove split=rows",
              [](const Combination& c) { return c.divides_layers && make_codec(c.distribute) != nullptr; }},
      Refusal{
          "layers with split=rows on several ranks with strategy zero1 and train.accumulate",
          "the owner of weights adds the gradients of whole replicas: set train.accumulate = 1, and raise "
          "train.replicas for smaller ones",
          [](const Combination& c) { return c.divides_layers && c.accumulate > 1; }},
      Refusal{"layers with split=rows on several ranks with strategy zero1 and optimizer adafactor or muon",
              "these take steps of whole tensors, and each rank has a part of one: choose another optimizer, "
              "or another strategy, with which each rank computes these layers by itself",
              [](const Combination& c) { return c.divides_layers && c.whole_tensors; }},
      Refusal{
          "layers with split=rows on several ranks with strategy zero1 and train.ema or train.swa_from",
          "each rank averages a slice of all weights, and has only a part of these: remove the average, or "
          "use another strategy, with which each rank computes these layers by itself",
          [](const Combination& c) { return c.divides_layers && c.averages; }},
      Refusal{"layers with split=rows on several ranks with strategy zero1 and tie",
              "a layer that shares the weight would need all of it on each rank: remove split=rows or tie",
              [](const Combination& c) { return c.split_layers_share; }},
      Refusal{"batch norm in groups of more replicas than there are",
              "a group could never be full: lower the number in model.batch_norm = \"group(G)\", or raise "
              "train.replicas",
              [](const Combination& c) { return c.largest_group > c.replicas; },
              [](const Combination& c) {
                return fmt::format("group({}) with {} replicas", c.largest_group, c.replicas);
              }},
      Refusal{"batch norm of single values in each step",
              "a sample at a time, it always gives zero: raise the batch, lower train.replicas or "
              "train.accumulate, or set model.batch_norm = \"sync\"",
              [](const Combination& c) { return !c.single_values.empty(); },
              [](const Combination& c) { return c.single_values; }},
  };
  return kRows;
}

void refuse(const Combination& combination) {
  for (const Refusal& row : refusals()) {
    if (!row.applies(combination)) continue;
    throw ConfigError(fmt::format("refused: {}; {}{}", row.combination, row.reason,
                                  row.found ? fmt::format("; found {}", row.found(combination)) : ""));
  }
}

}  // namespace lockstep
