#include "lockstep/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// How many of the first `count` cards, dealt in turn to `players`, went to `player`.
Index dealt(Index count, Index players, Index player) {
  return (count + players - 1 - player) / players;
}

class DealingSampler : public Sampler {
 public:
  explicit DealingSampler(const SamplingOptions& options)
      : options_(options),
        epoch_(plan_epoch(options)),
        shards_(options.rows, options.replicas, options.seed) {}

  const EpochPlan& epoch() const override { return epoch_; }

  Index count(Index step, Index replica) const override {
    return dealt_numbers(positions(step), replica).size();
  }

  Index largest_count() const override {
    return dealt(std::min(options_.global_batch, epoch_.samples), options_.replicas, 0);
  }

  Index step_samples(Index step) const override { return positions(step).size(); }

  void ids(Index step, Index replica, std::vector<Index>& out) const override {
    const bool own_shard = options_.mode == DataMode::kShard;
    const KeyedPermutation order(own_shard ? shards_.size(replica) : options_.rows,
                                 {.seed = options_.seed,
                                  .purpose = Purpose::kShuffle,
                                  .a = static_cast<std::uint64_t>(step / epoch_.steps),
                                  .b = static_cast<std::uint64_t>(replica)});
    const Range numbers = dealt_numbers(positions(step), replica);
    out.clear();
    for (Index number = numbers.begin; number < numbers.end; ++number) {
      out.push_back(own_shard ? shards_.record(replica, order(number)) : order(number));
    }
  }

  Index walk(Index step, Index replica) const override {
    const Index epoch = step / epoch_.steps;
    return options_.mode == DataMode::kShard ? epoch : epoch * options_.replicas + replica;
  }

  Range replicas_of(Index record) const override {
    if (options_.mode == DataMode::kFull) return {0, options_.replicas};
    const Index replica = shards_.replica_of(record);
    return {replica, replica + 1};
  }

  Index needed(Range replicas) const override {
    if (options_.mode == DataMode::kFull) return replicas.empty() ? 0 : options_.rows;
    Index records = 0;
    for (Index replica = replicas.begin; replica < replicas.end; ++replica) records += shards_.size(replica);
    return records;
  }

 private:
  // The positions of a step in its epoch.
  Range positions(Index step) const {
    const Index begin = step % epoch_.steps * options_.global_batch;
    return {begin, std::min(begin + options_.global_batch, epoch_.samples)};
  }

  // Which of the replica's samples of the epoch lie at these positions.
  Range dealt_numbers(Range positions, Index replica) const {
    return {dealt(positions.begin, options_.replicas, replica),
            dealt(positions.end, options_.replicas, replica)};
  }

  SamplingOptions options_;
  EpochPlan epoch_;
  ShardMap shards_;
};

}  // namespace

void check_sampling(const SamplingOptions& options) {
  if (options.rows < 1) throw ConfigError("the training set has no records, expected at least 1");
  if (options.global_batch < options.replicas) {
    throw ConfigError(
        fmt::format("a global batch of {} cannot give each of {} replicas a sample: set "
                    "train.global_batch to at least {}, or use fewer replicas",
                    options.global_batch, options.replicas, options.replicas));
  }
  const EpochPlan epoch = plan_epoch(options);
  if (epoch.steps < 1) {
    throw ConfigError(
        fmt::format("tail = drop leaves no step: the epoch has {} samples, less than the global batch "
                    "of {}; use a smaller batch, or tail = keep",
                    with_commas(epoch.positions), with_commas(options.global_batch)));
  }
}

EpochPlan plan_epoch(const SamplingOptions& options) {
  const Index batch = options.global_batch;
  EpochPlan plan;
  plan.positions = options.mode == DataMode::kFull ? options.rows * options.replicas : options.rows;
  plan.steps = options.tail == Tail::kKeep ? (plan.positions + batch - 1) / batch : plan.positions / batch;
  plan.samples = std::min(plan.positions, plan.steps * batch);
  plan.last_batch = plan.samples - std::max<Index>(plan.steps - 1, 0) * batch;
  plan.times_each_seen = static_cast<double>(plan.samples) / static_cast<double>(options.rows);
  return plan;
}

ShardMap::ShardMap(Index rows, Index replicas, std::uint64_t seed)
    : replicas_(replicas), order_(rows, {.seed = seed, .purpose = Purpose::kShard}) {}

Index ShardMap::replica_of(Index record) const {
  return order_.inverse(record) % replicas_;
}

Index ShardMap::size(Index replica) const {
  return dealt(order_.size(), replicas_, replica);
}

Index ShardMap::record(Index replica, Index k) const {
  return order_(replica + k * replicas_);
}

RecordNeeds records_for(const Sampler& sampler, std::vector<Range> hosted, Index rank) {
  const Index count = sampler.needed(hosted[static_cast<std::size_t>(rank)]);
  // Ranks that host nothing are servers, and come last.
  std::erase_if(hosted, [](Range replicas) { return replicas.empty(); });
  const auto host_of = [hosted = std::move(hosted)](Index replica) {
    return std::ranges::upper_bound(hosted, replica, {}, &Range::begin) - hosted.begin() - 1;
  };
  return {.ranks =
              [&sampler, host_of](Index record) {
                const Range replicas = sampler.replicas_of(record);
                return Range{host_of(replicas.begin), host_of(replicas.end - 1) + 1};
              },
          .count = count};
}

std::unique_ptr<Sampler> make_sampler(const SamplingOptions& options) {
  check_sampling(options);
  return std::make_unique<DealingSampler>(options);
}

}  // namespace lockstep
