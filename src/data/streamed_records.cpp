#include "lockstep/data/streamed_records.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/process.h"

namespace lockstep {
namespace {

// Chunks that are kept though no window holds them.
constexpr std::size_t kStrays = 4;

}  // namespace

StreamedRecords::StreamedRecords(const RecordSource& source, const TargetRule& rule,
                                 const SamplingOptions& sampling, Range replicas)
    : source_(source),
      replicas_(replicas),
      order_(sampling),
      reader_(source.reader(rule)),
      windows_(static_cast<std::size_t>(replicas.size())),
      thread_([this] { read_ahead(); }) {}

StreamedRecords::~StreamedRecords() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wanted_one_.notify_all();
}

Index StreamedRecords::rows() const {
  const std::lock_guard lock(mutex_);
  Index rows = 0;
  for (const auto& [number, packed] : cache_) rows += at(source_.chunks(), number).records.size();
  return rows;
}

Index StreamedRecords::bytes() const {
  return rows() * source_.info().record_bytes;
}

Index StreamedRecords::chunk_of(Index id) const {
  const auto end_of = [](const Chunk& chunk) { return chunk.records.end; };
  const std::span<const Chunk> chunks = source_.chunks();
  return std::ranges::upper_bound(chunks, id, {}, end_of) - chunks.begin();
}

void StreamedRecords::gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const {
  std::map<Index, Packed> held;
  std::vector<const std::byte*> records;
  records.reserve(ids.size());
  for (const Index id : ids) {
    const Index number = chunk_of(id);
    Packed& packed = held[number];
    if (!packed) packed = chunk(number);
    const Index position = id - at(source_.chunks(), number).records.begin;
    records.push_back(packed->data() + position * source_.info().record_bytes);
  }
  source_.unpack(ids, records, x, targets);
}

// *Blocking* until the chunk is read.
StreamedRecords::Packed StreamedRecords::chunk(Index number) const {
  std::unique_lock lock(mutex_);
  const auto found = cache_.find(number);
  if (found != cache_.end()) return found->second;
  const auto mine = awaited_.insert(number);
  queue_.push_front(number);
  wanted_one_.notify_one();
  Packed packed;
  read_one_.wait(lock, [&] {
    const auto there = cache_.find(number);
    if (there != cache_.end()) packed = there->second;
    return packed || failure_;
  });
  awaited_.erase(mine);
  if (!packed) std::rethrow_exception(failure_);
  return packed;
}

void StreamedRecords::expect(Index step) const {
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (Index replica = replicas_.begin; replica < replicas_.end; ++replica) {
    StreamOrder::Window& now = at(windows_, replica - replicas_.begin);
    const StreamOrder::Window window = order_.window(step, replica);
    moved |= window != now;
    now = window;
  }
  if (!moved) return;
  protect_windows();
  wanted_one_.notify_one();
}

void StreamedRecords::wait() const {
  std::unique_lock lock(mutex_);
  read_one_.wait(lock, [this] {
    return failure_ ||
           std::ranges::all_of(protected_, [this](Index number) { return cache_.contains(number); });
  });
  if (failure_) std::rethrow_exception(failure_);
}

// Lists the chunks of the windows of now, then of those that come next, in the order of reading; forgets the
// others. Requires the lock.
void StreamedRecords::protect_windows() const {
  protected_.clear();
  queue_.clear();
  for (const bool next : {false, true}) {
    for (Index replica = replicas_.begin; replica < replicas_.end; ++replica) {
      StreamOrder::Window window = at(windows_, replica - replicas_.begin);
      if (next) window = order_.next(window, replica);
      const auto walk = order_.walk(window.epoch, replica);
      auto piece = static_cast<std::size_t>(std::ranges::upper_bound(walk->ends, window.records.begin) -
                                            walk->ends.begin());
      for (; piece < walk->pieces.size(); ++piece) {
        if (walk->ends[piece] - walk->pieces[piece].size() >= window.records.end) break;
        const Index number = chunk_of(walk->pieces[piece].begin);
        if (protected_.insert(number).second && !cache_.contains(number)) queue_.push_back(number);
      }
    }
  }
  for (const Index number : awaited_) {
    if (!cache_.contains(number)) queue_.push_front(number);
  }
  std::erase_if(cache_, [this](const auto& entry) { return !is_needed(entry.first); });
}

// The thread.
void StreamedRecords::read_ahead() {
  std::deque<Index> strays;
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_one_.wait(lock, [this] { return stopping_ || (!queue_.empty() && !failure_); });
    if (stopping_) return;
    const Index number = queue_.front();
    queue_.pop_front();
    if (cache_.contains(number)) continue;
    lock.unlock();
    std::exception_ptr failure;
    auto packed = std::make_shared<std::vector<std::byte>>();
    try {
      const Index records = at(source_.chunks(), number).records.size();
      packed->resize(static_cast<std::size_t>(records * source_.info().record_bytes));
      reader_->read(number, *packed);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
    } else {
      cache_[number] = std::move(packed);
      if (!protected_.contains(number)) strays.push_back(number);
      if (strays.size() > kStrays) {
        if (!is_needed(strays.front())) cache_.erase(strays.front());
        strays.pop_front();
      }
    }
    read_one_.notify_all();
  }
}

Index stream_bytes(const DatasetInfo& info, const SamplingOptions& sampling, Index replicas) {
  Index largest = 0;
  for (const Chunk& chunk : *sampling.stream->chunks) largest = std::max(largest, chunk.records.size());
  const Index per_replica = 2 * sampling.stream->window + 3 * largest;
  const Index strays = static_cast<Index>(kStrays) * largest;
  return std::min(info.rows, replicas * per_replica + strays) * info.record_bytes;
}

Index memory_limit_bytes(const DataOptions& options) {
  return static_cast<Index>(options.memory_limit * kGib);
}

bool is_streamed(const DataOptions& options, const DatasetInfo& info) {
  if (options.memory != MemoryMode::kAuto) return options.memory == MemoryMode::kStream;
  return info.rows * info.record_bytes > memory_limit_bytes(options);
}

}  // namespace lockstep
