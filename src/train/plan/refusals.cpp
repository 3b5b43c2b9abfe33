// The refusals of a run are asked in order: a later one may count on what an earlier one refuses.
#include "lockstep/train/plan/refusals.h"

#include <fmt/format.h>

#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

bool loses_bits(const Combination& c) {
  return make_codec(c.distribute) != nullptr;
}

bool is_local_sgd(const Combination& c) {
  return local_sums(c.distribute) == LocalSums::kPerReplica;
}

bool averages(const Combination& c) {
  return c.train.ema > 0 || !c.train.swa_from.empty();
}

bool adds_in_another_order(const DistOptions& distribute) {
  return uses_algorithm(distribute) && distribute.algorithm != kAutoAlgorithm &&
         !find_entry(algorithm_catalog(), "algorithm", distribute.algorithm).allows(distribute.reduction);
}

void refuse_asynchronous(const Combination& c) {
  if (!is_asynchronous(c.distribute)) return;
  const Index backup_workers = c.distribute.backup_workers;
  refuse_if(c.distribute.reduction == Reduction::kOrdered,
            "ordered reduction with asynchronous workers (mode async or bounded, or backup workers)");
  refuse_if(c.normalises_over_replicas, "batch norm over several replicas with asynchronous workers");
  refuse_if(backup_workers > 0 && c.distribute.mode != ServerMode::kSync,
            "backup workers with mode async or bounded");
  refuse_if(backup_workers >= c.workers(), "as many backup workers as workers, or more");
  refuse_if(c.replicas % c.workers() != 0, "asynchronous workers with different numbers of replicas");
  refuse_if(c.batch % c.replicas != 0,
            "asynchronous workers with a global batch that does not divide by the replicas");
  refuse_if(c.replicas_without_rows > 0, "asynchronous workers without a record of their own");
  refuse_if(backup_workers > 0 && c.distribute.error_feedback && loses_bits(c),
            "error feedback on lossy compression with backup workers");
}

void refuse_exchange(const Combination& c) {
  if (c.distribute.reduction == Reduction::kOrdered) {
    refuse_if(loses_bits(c), "ordered reduction with lossy compression");
    refuse_if(adds_in_another_order(c.distribute), "ordered reduction with algorithm ring or rabenseifner");
  }
  if (is_local_sgd(c)) {
    refuse_if(loses_bits(c), "local_sgd with lossy compression");
    refuse_if(c.normalises_over_replicas || c.moments_of_all_replicas,
              "local_sgd with batch norm averaged, sync or group");
  }
}

void refuse_steps(const Combination& c) {
  const bool asynchronous = is_asynchronous(c.distribute);
  if (c.train.on_nan == OnNan::kSkip) {
    refuse_if(asynchronous, "train.on_nan skip with asynchronous workers");
    refuse_if(is_local_sgd(c), "train.on_nan skip with local_sgd");
    refuse_if(c.distribute.error_feedback && loses_bits(c),
              "train.on_nan skip with error feedback on lossy compression");
  }
  refuse_if(c.train.ema > 0 && (asynchronous || is_local_sgd(c)),
            "train.ema with asynchronous workers or local_sgd");
}

void refuse_samples(const Combination& c) {
  refuse_if(c.data.audit && (c.train.tail == Tail::kDrop || is_asynchronous(c.distribute)),
            "data.audit with train.tail drop, or with asynchronous workers");
  refuse_if(c.data.reshuffle == Reshuffle::kGlobal && c.data.shard_order != ShardOrder::kShuffled,
            "data.reshuffle global with a data.shard_order that is not shuffled");
  refuse_if(c.streamed && c.data.shard_order == ShardOrder::kStrided,
            "data.shard_order strided with streamed samples");
}

void refuse_stages(const Combination& c) {
  const Index stages = c.distribute.stages;
  if (stages <= 1) return;
  refuse_if(c.world % stages != 0, "distribute.stages with a number of ranks that it does not divide",
            fmt::format("{} rank{} and {} stages", c.world, c.world == 1 ? "" : "s", stages));
  refuse_if(c.servers > 0, "distribute.stages with parameter servers");
  refuse_if(is_local_sgd(c), "distribute.stages with local_sgd");
  refuse_if(loses_bits(c), "distribute.stages with lossy compression");
  refuse_if(c.train.threads > 1, "distribute.stages with several threads");
  refuse_if(c.normalises_over_replicas && c.distribute.schedule != PipelineSchedule::kGpipe,
            "distribute.stages with batch norm sync or group and a schedule that is not gpipe");
}

void refuse_split_layers(const Combination& c) {
  if (!c.divides_layers) return;
  const auto refuse_with = [](bool applies, std::string_view what) {
    refuse_if(applies,
              "layers with split=rows on several ranks with strategy zero1 and " + std::string(what));
  };
  refuse_with(c.distribute.stages > 1, "distribute.stages");
  refuse_with(loses_bits(c), "lossy compression");
  refuse_with(c.train.accumulate > 1, "train.accumulate");
  refuse_with(c.whole_tensors, "optimizer adafactor or muon");
  refuse_with(averages(c), "train.ema or train.swa_from");
  refuse_with(c.split_layers_share, "tie");
}

}  // namespace

std::span<const Refusal> refusals() {
  static const std::vector<Refusal> kRefusals = [] {
    std::vector<Refusal> refusals;
    for (const TextEntry& entry : embedded_entries("texts/refusals.txt")) {
      refusals.push_back({entry.name, entry.get("why")});
    }
    return refusals;
  }();
  return kRefusals;
}

// It is looked up even if it does not apply: a name without a text is noticed the first time.
void refuse_if(bool applies, std::string_view name, const std::string& found) {
  const Refusal& refusal = find_entry(refusals(), "refusal", name);
  if (!applies) return;
  throw ConfigError(fmt::format("refused: {}; {}{}", refusal.name, refusal.reason,
                                found.empty() ? "" : fmt::format("; found {}", found)));
}

void refuse(const Combination& c) {
  refuse_if(c.workers() < 1, "as many servers as ranks, or more");
  refuse_asynchronous(c);
  refuse_exchange(c);
  refuse_steps(c);
  refuse_samples(c);
  refuse_stages(c);
  refuse_split_layers(c);
  refuse_if(c.largest_group > c.replicas, "batch norm in groups of more replicas than there are",
            fmt::format("group({}) with {} replicas", c.largest_group, c.replicas));
  refuse_if(!c.single_values.empty(), "batch norm of single values in each step", c.single_values);
}

}  // namespace lockstep
