// Records that are read as they are needed, into a cache of chunks, by a thread that reads ahead. Any record
// can be gathered at any time; those of the windows that are expected next are there already.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/options.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/records.h"
#include "lockstep/data/stream_order.h"

namespace lockstep {

class StreamedRecords final : public Records {
 public:
  /// Streams the training set of a rank that hosts `replicas`; targets must obey the rule. The source must
  /// outlive it. Errors, here and when gathering: DataError.
  StreamedRecords(const RecordSource& source, const TargetRule& rule, const SamplingOptions& sampling,
                  Range replicas);
  ~StreamedRecords() override;
  StreamedRecords(const StreamedRecords&) = delete;
  StreamedRecords& operator=(const StreamedRecords&) = delete;

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
