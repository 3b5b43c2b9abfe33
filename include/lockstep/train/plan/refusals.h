// Settings that cannot be combined, each row with its reason: a pure function of the config, the number of
// ranks and the size of the data. Nothing is switched off silently: what a row names is refused.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/data/options.h"
#include "lockstep/distributed/options.h"

namespace lockstep {

/// The settings of a config that can conflict.
struct Combination {
  const DistOptions& distribute;
  Index world = 1;    ///< ranks
  Index servers = 0;  ///< ranks that are servers
  Index replicas = 1;
  Index batch = 1;                        ///< global
  Index threads = 1;                      ///< threads of each rank
  Index replicas_without_rows = 0;        ///< replicas that have no record of the training set
  bool normalises_over_replicas = false;  ///< batch norm sync or group
  bool moments_of_all_replicas = false;   ///< batch norm averaged or sync
  Index largest_group = 1;                ///< replicas in the largest batch norm group
  std::string single_values = {};         ///< the batch norm that has one value in each step; empty: none
  bool averages_each_step = false;        ///< train.ema
  bool two_averages = false;              ///< train.ema with train.swa_from
  bool skips_bad_steps = false;           ///< train.on_nan skip
  bool batch_follows_replicas = false;    ///< train.per_replica_batch without train.replicas
  bool two_validation_sets = false;       ///< data.validation with data.validation_share
  bool labels_beside_held_part = false;   ///< files of labels or weights for a part of the training samples
  bool follows_nothing = false;           ///< train.schedule plateau, and there is no validation set
  bool weighs_numbers = false;            ///< train.class_weights with a loss on numbers
  bool weighs_several = false;            ///< train.class_weights with several targets of yes or no
  bool fold_and_validation_set = false;   ///< data.fold with another validation set
  bool threshold_from_nowhere = false;    ///< eval.threshold by a measure, and there is no validation set
  bool threshold_of_others = false;       ///< eval.threshold, and the model does not say one yes or no
  bool threshold_of_scores = false;       ///< eval.threshold, and the loss gives no probabilities
  bool calibrates_on_nothing = false;     ///< train.calibrate, and there is no validation set
  bool calibrates_values = false;         ///< train.calibrate with a loss that gives no probabilities
  bool audits = false;                    ///< data.audit
  bool drops_tail = false;                ///< train.tail drop
  bool streamed = false;                  ///< training samples are read as they are needed
  bool divides_layers = false;            ///< ranks divide split layers among themselves
  bool split_layers_share = false;        ///< the weight of such a layer is another layer's, too
  bool whole_tensors = false;             ///< the optimizer takes steps of whole tensors
  bool averages = false;                  ///< train.ema or train.swa_from
  Index accumulate = 1;                   ///< parts of a replica's batch
  ShardOrder shard_order = ShardOrder::kShuffled;
  Reshuffle reshuffle = Reshuffle::kShard;

  Index workers() const { return world - servers; }
  bool divided() const { return distribute.stages > 1; }
};

struct Refusal {
  std::string combination;  ///< "ordered reduction with async"
  std::string reason;       ///< one sentence, with what to do instead
  std::function<bool(const Combination&)> applies;
  /// Says what was found, in numbers or names; may be null.
  std::function<std::string(const Combination&)> found = nullptr;
};

/// Every row there is. They are asked in order: a later one may count on what an earlier one refuses.
std::span<const Refusal> refusals();

/// Errors: ConfigError with the first row that applies.
void refuse(const Combination& combination);

}  // namespace lockstep
