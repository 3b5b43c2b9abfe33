#include "lockstep/data/loading/sampler.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/loading/streamed_records.h"

namespace lockstep {
namespace {

// How many of the first `count` cards, assigned in turn to `players`, went to `player`.
Index assigned(Index count, Index players, Index player) {
  return (count + players - 1 - player) / players;
}

class RoundRobinSampler : public Sampler {
 public:
  explicit RoundRobinSampler(const SamplingOptions& options) : options_(options), round_robin_(options) {}

  const EpochPlan& epoch() const override { return round_robin_.epoch(); }
  Index replicas() const override { return options_.replicas; }
  Index count(Index step, Index replica) const override { return round_robin_.numbers(step, replica).size(); }
  Index max_count() const override {
    return assigned(std::min(options_.global_batch, epoch().samples), options_.replicas, 0);
  }
  Index step_samples(Index step) const override { return round_robin_.positions(step).size(); }

  Index walk(Index step, Index replica) const override {
    const Index epoch = round_robin_.epoch_of(step);
    return options_.mode == DataMode::kShard ? epoch : epoch * options_.replicas + replica;
  }

  Range replicas_of(Index record) const override {
    if (every_replica_needs_all()) return {0, options_.replicas};
    const Index replica = first_replica_of(record);
    return {replica, replica + 1};
  }

  Index needed(Range replicas) const override {
    if (every_replica_needs_all()) return replicas.empty() ? 0 : options_.rows;
    Index records = 0;
    for (Index replica = replicas.begin; replica < replicas.end; ++replica)
      records += assigned(options_.rows, options_.replicas, replica);
    return records;
  }

 protected:
  const SamplingOptions& options() const { return options_; }
  const RoundRobin& round_robin() const { return round_robin_; }
  bool every_replica_needs_all() const {
    return options_.mode == DataMode::kFull || options_.reshuffle != Reshuffle::kShard;
  }

 private:
  // In shard mode, where the replicas keep their shards.
  virtual Index first_replica_of(Index record) const = 0;

  SamplingOptions options_;
  RoundRobin round_robin_;
};

// Samples records in memory, any of which can come next.
class MemorySampler final : public RoundRobinSampler {
 public:
  explicit MemorySampler(const SamplingOptions& options)
      : RoundRobinSampler(options),
        shards_(options, 0),
        runs_(static_cast<std::size_t>(options.buckets ? options.replicas : 0)) {}

  void ids(Index step, Index replica, std::vector<Index>& out) const override {
    if (!options().buckets) return draw(step, round_robin().numbers(step, replica), replica, out);
    const std::shared_ptr<const Run> run = run_of(step, replica);
    out = at(run->batches, step - run->steps.begin);
  }

 private:
  // The samples that a replica has in a run, by step. (The top of the header defines it.)
  struct Run {
    Range steps;
    std::vector<std::vector<Index>> batches;
  };

  // The records with these numbers among the replica's samples of the step's epoch.
  void draw(Index step, Range numbers, Index replica, std::vector<Index>& out) const {
    const Index epoch = round_robin().epoch_of(step);
    const bool own_shard = options().mode == DataMode::kShard;
    const bool anew = own_shard && options().reshuffle == Reshuffle::kGlobal && epoch > 0;
    const ShardMap shards = anew ? ShardMap(options(), epoch) : shards_;
    const bool divided = options().reshuffle == Reshuffle::kBatch;  // what replica 0 of one would get
    const Index drawer = divided ? 0 : replica;
    const KeyedPermutation order(own_shard ? shards.size(drawer) : options().rows,
                                 {.seed = options().seed,
                                  .purpose = Purpose::kShuffle,
                                  .a = static_cast<std::uint64_t>(epoch),
                                  .b = static_cast<std::uint64_t>(drawer)});
    out.resize(static_cast<std::size_t>(numbers.size()));
    std::iota(out.begin(), out.end(), numbers.begin);
    for (Index& number : out) number = divided ? replica + number * options().replicas : number;
    order.apply(out);
    if (own_shard) shards.to_records(drawer, out);
    if (options().starts > 0) draw_starts(walk(step, replica), out);
  }

  std::shared_ptr<const Run> make_run(Range steps, Index replica) const {
    const BucketOptions& buckets = *options().buckets;
    const auto size = [&](Index step) { return round_robin().numbers(step, replica).size(); };
    const Index first = round_robin().numbers(steps.begin, replica).begin;
    std::vector<Index> all;
    draw(steps.begin, {first, round_robin().numbers(steps.end - 1, replica).end}, replica, all);
    std::ranges::stable_sort(all, {}, [&](Index id) { return at(*buckets.lengths, id); });
    const KeyedPermutation order(
        steps.size(), {.seed = options().seed,
                       .purpose = Purpose::kBuckets,
                       .a = static_cast<std::uint64_t>(round_robin().epoch_of(steps.begin)),
                       .b = static_cast<std::uint64_t>(steps.begin % epoch().steps / buckets.batches)});
    auto run = std::make_shared<Run>();
    run->steps = steps;
    run->batches.resize(static_cast<std::size_t>(steps.size()));
    auto next = all.begin();
    for (Index i = 0; i < steps.size(); ++i) {
      const Index place = order(i);
      const auto end = next + size(steps.begin + place);
      at(run->batches, place).assign(next, end);
      next = end;
    }
    return run;
  }

  // The last run of each replica is kept.
  std::shared_ptr<const Run> run_of(Index step, Index replica) const {
    {
      const std::lock_guard lock(mutex_);
      const std::shared_ptr<const Run>& last = at(runs_, replica);
      if (last && last->steps.contains(step)) return last;
    }
    const Index first = round_robin().epoch_of(step) * epoch().steps;
    const Index begin = step - (step - first) % options().buckets->batches;
    const Index end = std::min(begin + options().buckets->batches, first + epoch().steps);
    std::shared_ptr<const Run> run = make_run({begin, end}, replica);
    const std::lock_guard lock(mutex_);
    return at(runs_, replica) = std::move(run);
  }

  // Each record of a walk stands for a place of its own.
  void draw_starts(Index walk, std::vector<Index>& records) const {
    for (Index& record : records) {
      RandomStream random({.seed = options().seed,
                           .purpose = Purpose::kStart,
                           .a = static_cast<std::uint64_t>(walk),
                           .b = static_cast<std::uint64_t>(record)});
      record =
          options().rows + static_cast<Index>(random.bits64() % static_cast<std::uint64_t>(options().starts));
    }
  }

  Index first_replica_of(Index record) const override { return shards_.replica_of(record); }

  void find_replicas(Index first, std::span<Range> replicas) const override {
    if (every_replica_needs_all()) return RoundRobinSampler::find_replicas(first, replicas);
    std::vector<Index> found(replicas.size());
    std::iota(found.begin(), found.end(), first);
    shards_.find_replicas(found);
    std::ranges::transform(found, replicas.begin(), [](Index replica) {
      return Range{replica, replica + 1};
    });
  }

  ShardMap shards_;
  mutable std::mutex mutex_;  // guards the runs
  mutable std::vector<std::shared_ptr<const Run>> runs_;
};

// Samples records that are read as they are needed.
class StreamSampler final : public RoundRobinSampler {
 public:
  explicit StreamSampler(const SamplingOptions& options) : RoundRobinSampler(options), order_(options) {}

  void ids(Index step, Index replica, std::vector<Index>& out) const override {
    out.clear();
    order_.take(round_robin().epoch_of(step), replica, round_robin().numbers(step, replica), out);
  }

 private:
  Index first_replica_of(Index record) const override { return order_.replica_of(record); }

  StreamOrder order_;
};

}  // namespace

void check_sampling(const SamplingOptions& options) {
  if (options.rows < 1) throw ConfigError("the training set has no records, expected at least 1");
  error_if(options.global_batch < options.replicas,
           "a global batch of {} cannot give each of {} replicas a sample: set train.global_batch to at "
           "least {}, or use fewer replicas",
           options.global_batch, options.replicas, options.replicas);
  const EpochPlan epoch = plan_epoch(options);
  if (epoch.steps < 1) {
    throw ConfigError(
        "tail = drop leaves no step: the epoch has {} samples, less than the global batch of {}; use a "
        "smaller batch, or tail = keep",
        with_commas(epoch.positions), with_commas(options.global_batch));
  }
}

EpochPlan plan_epoch(const SamplingOptions& options) {
  const Index batch = options.global_batch;
  EpochPlan plan;
  plan.positions = options.mode == DataMode::kFull ? options.rows * options.replicas : options.rows;
  plan.steps = options.tail == Tail::kKeep ? divide_up(plan.positions, batch) : plan.positions / batch;
  plan.samples = std::min(plan.positions, plan.steps * batch);
  plan.last_batch = plan.samples - std::max<Index>(plan.steps - 1, 0) * batch;
  plan.times_each_seen = static_cast<double>(plan.samples) / static_cast<double>(options.rows);
  return plan;
}

RoundRobin::RoundRobin(const SamplingOptions& options)
    : replicas_(options.replicas), global_batch_(options.global_batch), epoch_(plan_epoch(options)) {}

Range RoundRobin::positions(Index step) const {
  const Index begin = step % epoch_.steps * global_batch_;
  return {begin, std::min(begin + global_batch_, epoch_.samples)};
}

Range RoundRobin::numbers(Index step, Index replica) const {
  const Range assigned_to_all = positions(step);
  return {assigned(assigned_to_all.begin, replicas_, replica),
          assigned(assigned_to_all.end, replicas_, replica)};
}

ShardMap::ShardMap(const SamplingOptions& options, Index epoch)
    : replicas_(options.reshuffle == Reshuffle::kBatch ? 1 : options.replicas),
      shard_order_(options.shard_order),
      order_(options.rows,
             {.seed = options.seed, .purpose = Purpose::kShard, .a = static_cast<std::uint64_t>(epoch)}) {}

Index ShardMap::replica_of(Index record) const {
  find_replicas({&record, 1});
  return record;
}

void ShardMap::find_replicas(std::span<Index> records) const {
  if (shard_order_ == ShardOrder::kShuffled) order_.invert(records);
  for (Index& record : records)
    record = shard_order_ == ShardOrder::kContiguous ? part_of(order_.size(), replicas_, record)
                                                     : record % replicas_;
}

Index ShardMap::size(Index replica) const {
  return assigned(order_.size(), replicas_, replica);
}

void ShardMap::to_records(Index replica, std::span<Index> numbers) const {
  const Index first = split_evenly(order_.size(), replicas_, replica).begin;
  for (Index& k : numbers) {
    k = shard_order_ == ShardOrder::kContiguous ? first + k : replica + k * replicas_;
  }
  if (shard_order_ == ShardOrder::kShuffled) order_.apply(numbers);
}

RecordNeeds records_for(const Sampler& sampler, std::vector<Range> hosted, Index rank) {
  const Index count = sampler.needed(at(hosted, rank));
  const Index sampler_replicas = std::ranges::max(hosted, {}, &Range::end).end;
  // Ranks that host nothing are servers, and come last.
  std::erase_if(hosted, [](Range replicas) { return replicas.empty(); });
  const auto host_of = [hosted = std::move(hosted)](Index replica) {
    return std::ranges::upper_bound(hosted, replica, {}, &Range::begin) - hosted.begin() - 1;
  };
  return {.ranks =
              [&sampler, host_of, block = std::vector<Range>(), first = Index{0},
               rows = sampler.needed({0, sampler_replicas})](Index record) mutable {
                constexpr Index kBlock = 256;  // records are asked for in turn
                if (record < first || record >= first + std::ssize(block)) {
                  first = record;
                  block.resize(static_cast<std::size_t>(std::clamp<Index>(rows - first, 1, kBlock)));
                  sampler.find_replicas(first, block);
                }
                const Range replicas = at(block, record - first);
                return Range{host_of(replicas.begin), host_of(replicas.end - 1) + 1};
              },
          .count = count,
          .everyone = sampler.needed({0, 1}) == sampler.needed({0, sampler_replicas})};
}

double padding_share(const Sampler& sampler, std::span<const Scalar> lengths) {
  constexpr Index kSteps = 1000;
  double counted = 0;
  double computed = 0;
  std::vector<Index> ids;
  for (Index step = 0; step < std::min(kSteps, sampler.epoch().steps); ++step) {
    for (Index replica = 0; replica < sampler.replicas(); ++replica) {
      sampler.ids(step, replica, ids);
      Scalar longest = 0;
      for (const Index id : ids) {
        longest = std::max(longest, at(lengths, id));
        counted += static_cast<double>(at(lengths, id));
      }
      computed += static_cast<double>(longest) * static_cast<double>(ids.size());
    }
  }
  return 1 - counted / computed;
}

std::unique_ptr<Sampler> make_sampler(const SamplingOptions& options) {
  check_sampling(options);
  if (options.stream) return std::make_unique<StreamSampler>(options);
  return std::make_unique<MemorySampler>(options);
}

}  // namespace lockstep
