// The order of streamed records is a pure function of seed, epoch and replica; the header defines unit,
// sequence, shard, walk and window. This file computes them in four steps.
//
// 1. make_units() joins chunks into units: whole files if data.shard_by asks for them, or if there are
//    kFilesPerReplica for each replica, else chunks with those that follow on.
// 2. sequence() permutes the units with a key; `begins` are the positions of the units in that order.
// 3. make_walk() takes a replica's shard, a range of positions of the sequence, finds the units that overlap
//    it, permutes them again with a key of epoch and replica, and lists their records as pieces. Units at
//    both ends of the shard contribute only a part.
// 4. take() permutes the records of a window of the walk.
//
// Permutations are keyed (KeyedPermutation) and need no memory, so any record of any epoch is found without
// the ones before it. Only walks are stored: the last one of each replica, under a lock, since loader threads
// share the order.
#include "lockstep/data/loading/streamed_records.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "lockstep/base/process.h"

namespace lockstep {
namespace {

// Chunks that are kept though no window holds them.
constexpr std::size_t kStrays = 4;

// So many files that whole ones keep all replicas busy.
constexpr Index kFilesPerReplica = 4;

}  // namespace

Index StreamWalk::record(Index k) const {
  const auto piece = static_cast<std::size_t>(std::ranges::upper_bound(ends, k) - ends.begin());
  return pieces[piece].end - (ends[piece] - k);
}

StreamOrder::StreamOrder(const SamplingOptions& options)
    : options_(options),
      round_robin_(options),
      units_(make_units()),
      first_(sequence(0)),
      walks_(static_cast<std::size_t>(options.replicas)) {}

std::vector<StreamOrder::Unit> StreamOrder::make_units() const {
  const std::vector<Chunk>& chunks = *options_.stream->chunks;
  const ShardBy by = options_.stream->shard_by;
  const bool files = by == ShardBy::kAuto ? chunks.back().file + 1 >= kFilesPerReplica * options_.replicas
                                          : by == ShardBy::kFile;
  std::vector<Unit> units;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const bool joins = i > 0 && (files ? chunks[i].file == chunks[i - 1].file : chunks[i].follows_on);
    const auto chunk = static_cast<Index>(i);
    if (!joins) units.push_back({{chunk, chunk}, {chunks[i].records.begin, chunks[i].records.begin}});
    units.back().chunks.end = chunk + 1;
    units.back().records.end = chunks[i].records.end;
  }
  return units;
}

StreamOrder::Sequence StreamOrder::sequence(Index epoch) const {
  const auto count = std::ssize(units_);
  const KeyedPermutation order(count, {.seed = options_.seed,
                                       .purpose = Purpose::kUnits,
                                       .a = static_cast<std::uint64_t>(reassigned() ? epoch : 0)});
  Sequence sequence;
  Index begin = 0;
  for (Index i = 0; i < count; ++i) {
    const bool shuffled = options_.shard_order == ShardOrder::kShuffled;
    const auto unit = static_cast<std::size_t>(shuffled ? order(i) : i);
    sequence.units.push_back(unit);
    sequence.begins.push_back(begin);
    begin += units_[unit].records.size();
  }
  return sequence;
}

Range StreamOrder::shard(Index replica) const {
  if (options_.mode == DataMode::kFull) return {0, options_.rows};
  return split_evenly(options_.rows, options_.replicas, replica);
}

std::shared_ptr<const StreamWalk> StreamOrder::make_walk(Index epoch, Index replica) const {
  const Sequence anew = reassigned() ? sequence(epoch) : Sequence{};
  const Sequence& sequence = reassigned() ? anew : first_;
  const Range shard = this->shard(replica);
  // The units that the shard has a part of.
  const auto first = std::ranges::upper_bound(sequence.begins, shard.begin) - sequence.begins.begin() - 1;
  const auto end = std::ranges::lower_bound(sequence.begins, shard.end) - sequence.begins.begin();
  const KeyedPermutation order(end - first, {.seed = options_.seed,
                                             .purpose = Purpose::kPieces,
                                             .a = static_cast<std::uint64_t>(epoch),
                                             .b = static_cast<std::uint64_t>(replica)});
  auto walk = std::make_shared<StreamWalk>();
  walk->epoch = epoch;
  for (Index i = 0; i < end - first; ++i) {
    const auto position = static_cast<std::size_t>(first + order(i));
    const Unit& unit = units_[sequence.units[position]];
    const Index shift = unit.records.begin - sequence.begins[position];
    for (Index chunk = unit.chunks.begin; chunk < unit.chunks.end; ++chunk) {
      const Range piece =
          intersect(at(*options_.stream->chunks, chunk).records, {shard.begin + shift, shard.end + shift});
      if (piece.empty()) continue;
      walk->pieces.push_back(piece);
      walk->ends.push_back(walk->size() + piece.size());
    }
  }
  assert(walk->size() == shard.size());
  return walk;
}

std::shared_ptr<const StreamWalk> StreamOrder::walk(Index epoch, Index replica) const {
  const auto position = static_cast<std::size_t>(replica);
  {
    const std::lock_guard lock(mutex_);
    if (walks_[position] && walks_[position]->epoch == epoch) return walks_[position];
  }
  std::shared_ptr<const StreamWalk> walk = make_walk(epoch, replica);
  const std::lock_guard lock(mutex_);
  walks_[position] = walk;
  return walk;
}

Index StreamOrder::replica_of(Index record) const {
  if (options_.mode == DataMode::kFull) return 0;
  for (std::size_t position = 0; position < first_.units.size(); ++position) {
    const Range records = units_[first_.units[position]].records;
    if (!records.contains(record)) continue;
    return part_of(options_.rows, options_.replicas, first_.begins[position] + record - records.begin);
  }
  assert(false);
  return 0;
}

StreamOrder::Window StreamOrder::window(Index step, Index replica) const {
  const Index size = options_.stream->window;
  const Index begin = round_robin_.numbers(step, replica).begin / size * size;
  const Index end = std::min(begin + size, shard(replica).size());
  return {round_robin_.epoch_of(step), {begin, std::max(begin, end)}};
}

StreamOrder::Window StreamOrder::next(const Window& window, Index replica) const {
  const Index records = shard(replica).size();
  const bool last = window.records.end >= records;
  const Index begin = last ? 0 : window.records.end;
  return {window.epoch + (last ? 1 : 0), {begin, std::min(begin + options_.stream->window, records)}};
}

void StreamOrder::take(Index epoch, Index replica, Range numbers, std::vector<Index>& records) const {
  const std::shared_ptr<const StreamWalk> walk = this->walk(epoch, replica);
  const Index size = options_.stream->window;
  for (Index window = numbers.begin / size; window * size < numbers.end; ++window) {
    const Index begin = window * size;
    const KeyedPermutation order(std::min(size, walk->size() - begin),
                                 {.seed = options_.seed,
                                  .purpose = Purpose::kWindow,
                                  .a = static_cast<std::uint64_t>(epoch * options_.replicas + replica),
                                  .b = static_cast<std::uint64_t>(window)});
    const Range taken = intersect(numbers, {begin, begin + size});
    for (Index k = taken.begin; k < taken.end; ++k) records.push_back(walk->record(begin + order(k - begin)));
  }
}

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
