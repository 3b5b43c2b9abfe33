// Which samples replica r gets in step t: a pure function of the config, so resuming is a number and every
// rank can know what every other does.
//
// An epoch is a sequence of *positions* that are assigned to the replicas in turn, like cards: position p
// belongs to replica p mod R and is that replica's sample number p / R. Step s of the epoch is the positions
// [s*B, (s+1)*B). So every global batch has exactly B samples (the last one what is left), the replicas'
// shares differ by at most one, and all replicas come to the end together. In shard mode there are `rows`
// positions, and shards partition the records: the record with position q in a keyed permutation of the whole
// data set belongs to replica q mod R. In full mode there are rows * R positions and every replica walks all
// the records. Within an epoch each replica takes its records in an order keyed by (seed, epoch, replica).
//
// With buckets, batches have records of similar lengths. A *run* is `batches` steps of an epoch, or what is
// left of it. The samples that a replica has in a run are sorted by length, those of one length as they
// came, and cut into as many batches. Which of these comes in which step is a permutation keyed by (seed,
// epoch, run), the same for all replicas: in one step all have about the same lengths, and none waits long
// for another.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/base/types.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/options.h"

namespace lockstep {

/// The options that determine the order of streamed records (see streamed_records.h).
struct StreamOptions {
  std::shared_ptr<const std::vector<Chunk>> chunks;
  ShardBy shard_by = ShardBy::kAuto;
  Index window = 1;  ///< records that are mixed at a time: data.shuffle_buffer
};

/// The options that put records of similar lengths into a batch.
struct BucketOptions {
  std::shared_ptr<const std::vector<Scalar>> lengths;  ///< of all records
  Index batches = 1;                                   ///< of a run: data.bucket_by_length
};

struct SamplingOptions {
  Index rows = 0;
  Index replicas = 1;
  Index global_batch = 1;
  DataMode mode = DataMode::kShard;
  Tail tail = Tail::kKeep;
  std::uint64_t seed = 1;
  ShardOrder shard_order = ShardOrder::kShuffled;
  Reshuffle reshuffle = Reshuffle::kShard;
  Index starts = 0;  ///< DatasetInfo::starts: above 0, each sample is drawn anew, with an id behind `rows`
  std::optional<StreamOptions> stream = std::nullopt;   ///< none: all records are in memory
  std::optional<BucketOptions> buckets = std::nullopt;  ///< only of records in memory
};

/// The numbers of an epoch that follow from the options alone.
struct EpochPlan {
  Index positions = 0;         ///< samples assigned if the tail is kept: rows, or rows * replicas
  Index steps = 0;             ///< ceil (keep) or floor (drop) of positions / global_batch
  Index samples = 0;           ///< samples used: positions, or steps * global_batch
  Index last_batch = 0;        ///< samples of the last step of the epoch
  double times_each_seen = 0;  ///< samples / rows: how often an example is seen in an epoch, on average
};
/// Errors: ConfigError if global_batch < replicas or rows < 1, or if dropping the tail leaves no step.
void check_sampling(const SamplingOptions& options);

/// Requires rows, replicas and global_batch above 0.
EpochPlan plan_epoch(const SamplingOptions& options);

/// The positions of an epoch, assigned to the replicas in turn.
class RoundRobin {
 public:
  explicit RoundRobin(const SamplingOptions& options);

  const EpochPlan& epoch() const { return epoch_; }
  Index epoch_of(Index step) const { return step / epoch_.steps; }
  /// The positions of a step in its epoch.
  Range positions(Index step) const;
  /// Which of the replica's samples of the epoch those are.
  Range numbers(Index step, Index replica) const;

 private:
  Index replicas_;
  Index global_batch_;
  EpochPlan epoch_;
};

/// Which records belong to which replica in shard mode. Shuffled: a keyed permutation of all records,
/// assigned in turn. Strided: the records, assigned in turn. Contiguous: the first part of the records is the
/// first replica's, and so on.
class ShardMap {
 public:
  /// `epoch`: 0 unless the records are assigned anew in each.
  ShardMap(const SamplingOptions& options, Index epoch);
  Index replica_of(Index record) const;
  /// Replaces each record by its replica.
  void find_replicas(std::span<Index> records) const;
  /// Number of records of a replica; differs by at most one between replicas.
  Index size(Index replica) const;
  /// Replaces each k by record `k` of the replica's shard, 0 <= k < size(replica).
  void to_records(Index replica, std::span<Index> numbers) const;

 private:
  Index replicas_;
  ShardOrder shard_order_;
  KeyedPermutation order_;
};

/// Immutable, so safe from several threads.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual const EpochPlan& epoch() const = 0;
  virtual Index replicas() const = 0;

  /// Samples of `replica` in `step` (steps count through all epochs, from 0). May be 0 in a short last batch.
  virtual Index count(Index step, Index replica) const = 0;
  /// The most that count() gives for any step and replica: buffers for that many samples suffice.
  virtual Index max_count() const = 0;
  /// Samples of all replicas together in `step`.
  virtual Index step_samples(Index step) const = 0;
  /// The record ids of `replica` in `step`, in order. Cheap when steps come in order, right in any order.
  virtual void ids(Index step, Index replica, std::vector<Index>& out) const = 0;
  /// The walk over the records that `replica` is on in `step`: no record comes twice in one walk. In shard
  /// mode all replicas share the walk of an epoch; in full mode each has its own.
  virtual Index walk(Index step, Index replica) const = 0;
  /// The replicas that will ever need this record.
  virtual Range replicas_of(Index record) const = 0;
  /// replicas_of() those records that follow on from `first`; many at a time take less time each.
  virtual void find_replicas(Index first, std::span<Range> replicas) const {
    for (Range& each : replicas) each = replicas_of(first++);
  }
  /// How many records a rank that hosts these replicas will ever need.
  virtual Index needed(Range replicas) const = 0;
};

/// The records that ranks must load that host these replicas each, as `rank` sees it; the ranks that host
/// some come first. The sampler must outlive the result.
RecordNeeds records_for(const Sampler& sampler, std::vector<Range> hosted, Index rank);

/// The share of padding in the batches of the replicas, each cut at its longest record: that of the first
/// epoch, or of its first thousand steps. `lengths`: of all records.
double padding_share(const Sampler& sampler, std::span<const Scalar> lengths);

/// The sampler described at the top of this file or, where records are streamed, in streamed_records.h.
/// Errors: as check_sampling.
std::unique_ptr<Sampler> make_sampler(const SamplingOptions& options);

}  // namespace lockstep
