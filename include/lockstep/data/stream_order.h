// The order of records that are read as they are needed: random enough to train on, and yet made of long
// reads. It is a pure function, so resuming is a number, and no rank matters in it.
//
// The data set is cut into units: chunks (with those that follow on), or whole files. The *sequence* is the
// units in an order keyed by the seed (or by seed and epoch, where records are assigned anew), with the
// records of a unit in their own order. Replica r's shard is part r of R of the sequence, so shards differ by
// at most one record, and only at their borders do two replicas read the same chunk. In full mode it is all
// of it.
//
// In each epoch a replica *walks* the chunks of its shard, unit by unit in an order keyed by (seed, epoch,
// replica). The walk is cut into windows of data.shuffle_buffer records, and the records of a window are
// taken in a keyed order: what a shuffle buffer does, with a memory that can be stated.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/data/sampler.h"

namespace lockstep {

/// The records of one epoch of one replica, in the order in which they are read.
struct StreamWalk {
  Index epoch = -1;
  std::vector<Range> pieces;  ///< records, each piece within one chunk
  std::vector<Index> ends;    ///< records up to the end of each piece

  Index record(Index k) const;
  Index size() const { return ends.empty() ? 0 : ends.back(); }
};

/// Immutable but for a cache; safe from several threads.
class StreamOrder {
 public:
  explicit StreamOrder(const SamplingOptions& options);

  std::shared_ptr<const StreamWalk> walk(Index epoch, Index replica) const;
  /// The replica that record belongs to in the first epoch.
  Index replica_of(Index record) const;

  /// A part of a replica's walk: [begin, end) of its records.
  struct Window {
    Index epoch = 0;
    Range records;
    bool operator==(const Window&) const = default;
  };
  /// The window in which the replica's samples of `step` begin.
  Window window(Index step, Index replica) const;
  /// The window after it, maybe of the next epoch.
  Window next(const Window& window, Index replica) const;

  /// Record `k` of the replica's epoch, in the order in which samples are taken.
  class Samples {
   public:
    Samples(const StreamOrder& order, Index epoch, Index replica);
    Index record(Index k);

   private:
    const StreamOrder& order_;
    Index epoch_;
    Index replica_;
    std::shared_ptr<const StreamWalk> walk_;
    Index window_ = -1;
    KeyedPermutation within_;
  };

 private:
  // Chunks that stay together.
  struct Unit {
    Range chunks;
    Range records;
  };
  // The units of an epoch in order, and where in the sequence each begins.
  struct Sequence {
    std::vector<std::size_t> units;
    std::vector<Index> begins;
  };

  bool reassigned() const { return options_.reshuffle == Reshuffle::kGlobal; }
  std::vector<Unit> make_units() const;
  Sequence sequence(Index epoch) const;
  Range shard(Index replica) const;
  std::shared_ptr<const StreamWalk> make_walk(Index epoch, Index replica) const;
  void add_pieces(const Unit& unit, Range records, StreamWalk& walk) const;

  SamplingOptions options_;
  RoundRobin round_robin_;
  std::vector<Unit> units_;
  Sequence first_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const StreamWalk>> walks_;  // the last of each replica
};

}  // namespace lockstep
