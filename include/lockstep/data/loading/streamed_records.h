// Records that are read as they are needed, into a cache of chunks, by a thread that reads ahead. Any record
// can be gathered at any time; those of the windows that are expected next are there already.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/data/options.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

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

  /// Adds the records that have these numbers among the replica's samples of the epoch.
  void take(Index epoch, Index replica, Range numbers, std::vector<Index>& records) const;

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

  SamplingOptions options_;
  RoundRobin round_robin_;
  std::vector<Unit> units_;
  Sequence first_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const StreamWalk>> walks_;  // the last of each replica
};

class StreamedRecords final : public Records, NoCopy {
 public:
  /// Streams the training set of a rank that hosts `replicas`; targets must obey the rule. The source must
  /// outlive it. Errors, here and when gathering: DataError.
  StreamedRecords(const RecordSource& source, const TargetRule& rule, const SamplingOptions& sampling,
                  Range replicas);
  ~StreamedRecords() override;

  /// Records in the cache now.
  Index rows() const override;
  Index bytes() const override;
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override;
  void expect(Index step) const override;
  /// *Blocking* until all that is expected is read.
  void wait() const;

 private:
  using Packed = std::shared_ptr<const std::vector<std::byte>>;

  Index chunk_of(Index id) const;
  Packed chunk(Index number) const;
  void protect_windows() const;
  bool is_needed(Index number) const { return protected_.contains(number) || awaited_.contains(number); }
  void read_ahead();

  const RecordSource& source_;
  Range replicas_;
  StreamOrder order_;
  std::unique_ptr<ChunkReader> reader_;  // the thread's

  // A cache: what is below changes, what is gathered does not.
  mutable std::mutex mutex_;
  mutable std::condition_variable wanted_one_;
  mutable std::condition_variable read_one_;
  mutable std::map<Index, Packed> cache_;
  mutable std::deque<Index> queue_;                   // chunks to read, in order
  mutable std::set<Index> protected_;                 // chunks in the windows of now and next
  mutable std::vector<StreamOrder::Window> windows_;  // the window of each replica now
  mutable std::multiset<Index> awaited_;              // chunks that gather() waits for
  mutable std::exception_ptr failure_;
  bool stopping_ = false;
  std::jthread thread_;
};

/// The most memory in bytes that the cache of such a rank takes: two windows for each replica, and the
/// chunks at their borders.
Index stream_bytes(const DatasetInfo& info, const SamplingOptions& sampling, Index replicas);

// Whether a data set is held in memory or read as it is needed.

/// data.memory_limit in bytes.
Index memory_limit_bytes(const DataOptions& options);

/// The choice of data.memory; auto streams a data set that is larger than the limit. That depends on the
/// config and the files alone, because the order of samples does, and must not change with the number of
/// ranks.
bool is_streamed(const DataOptions& options, const DatasetInfo& info);

}  // namespace lockstep
