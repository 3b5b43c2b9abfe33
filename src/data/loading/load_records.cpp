#include "lockstep/data/loading/load_records.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "loaded_records.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/process.h"
#include "lockstep/data/inputs/reading_row.h"
#include "lockstep/data/message.h"

namespace lockstep {
namespace {

// Packed bytes that a rank reads before records are exchanged.
constexpr Index kRoundBytes = Index{8} << 20;

// Records that are functions of their ids, or of which nothing is needed.
class ComputedRecords final : public Records {
 public:
  ComputedRecords(const RecordSource& source, Index rows, RecordPart part)
      : source_(source), rows_(rows), part_(part) {}
  Index rows() const override { return rows_; }
  Index bytes() const override { return 0; }
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override {
    if (part_ == RecordPart::kNothing) return;
    if (part_ == RecordPart::kAll) return source_.unpack(ids, {}, x, targets);
    // Targets are computed with the features, which nobody wants: record by record.
    const Index columns = source_.info().features.size();
    AlignedBuffer<Scalar> features(columns);
    Matrix unused(features.data(), 1, columns);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      Matrix target(targets.data() + static_cast<Index>(i) * targets.cols(), 1, targets.cols());
      source_.unpack(ids.subspan(i, 1), {}, unused, target);
    }
  }

 private:
  const RecordSource& source_;
  Index rows_;
  RecordPart part_;
};

// The chunks of a share that are read before each exchange: at least one, and about kRoundBytes.
std::vector<Range> rounds_of(std::span<const Chunk> chunks, Range share, Index record_bytes) {
  std::vector<Range> rounds;
  Index bytes = 0;
  for (Index chunk = share.begin; chunk < share.end; ++chunk) {
    const Index more = at(chunks, chunk).records.size() * record_bytes;
    if (rounds.empty() || bytes + more > kRoundBytes) {
      rounds.push_back({chunk, chunk});
      bytes = 0;
    }
    bytes += more;
    rounds.back().end = chunk + 1;
  }
  return rounds;
}

// One rank's part of the work.
class Loading {
 public:
  /// `hashes`: of the records that this rank reads; null: not wanted.
  Loading(const RecordSource& source, const RecordNeeds& needs, PeerGroup& peers, LoadedRecords& held,
          RecordHashes* hashes)
      : source_(source),
        needs_(needs),
        peers_(peers),
        held_(held),
        hashes_(hashes),
        send_buffers_(static_cast<std::size_t>(peers.size())) {}

  void run(const TargetRule& rule) {
    const std::vector<Range> shares = source_.shares(peers_.size());
    std::vector<Range> mine;
    std::size_t rounds = 0;
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      std::vector<Range> theirs = rounds_of(source_.chunks(), shares[rank], source_.info().record_bytes);
      rounds = std::max(rounds, theirs.size());
      if (static_cast<Index>(rank) == peers_.rank()) mine = std::move(theirs);
    }
    std::unique_ptr<ChunkReader> reader;
    for (std::size_t round = 0; round < rounds; ++round) {
      peers_.agree([&] {
        if (!reader) reader = source_.reader_of_share(rule);
        if (round < mine.size()) read(*reader, mine[round]);
      });
      if (peers_.size() > 1) exchange();
    }
  }

 private:
  void read(ChunkReader& reader, Range chunks) {
    const auto bytes = static_cast<std::size_t>(source_.info().record_bytes);
    for (Index chunk = chunks.begin; chunk < chunks.end; ++chunk) {
      throw_if_stopped();
      const Range records = at(source_.chunks(), chunk).records;
      packed_.resize(static_cast<std::size_t>(records.size()) * bytes);
      reader.read(chunk, packed_);
      for (Index id = records.begin; id < records.end; ++id) {
        const auto record =
            std::span(packed_).subspan(static_cast<std::size_t>(id - records.begin) * bytes, bytes);
        if (hashes_ != nullptr) hashes_->add(id, record);
        hand_out(id, record.last(static_cast<std::size_t>(held_.record_bytes())));
      }
    }
  }

  void hand_out(Index id, std::span<const std::byte> record) {
    const Range ranks = needs_.ranks(id);
    for (Index rank = ranks.begin; rank < ranks.end; ++rank) {
      if (held_.is_shared() && !peers_.writes_for_node(rank)) continue;
      if (rank == peers_.rank()) {
        std::ranges::copy(record, held_.storage_of(id).begin());
      } else {
        Bytes& buffer = at(send_buffers_, rank);
        const auto name = std::as_bytes(std::span(&id, 1));
        buffer.insert(buffer.end(), name.begin(), name.end());
        buffer.insert(buffer.end(), record.begin(), record.end());
      }
    }
  }

  void exchange() {
    for (const Bytes& buffer : peers_.all_to_all(send_buffers_)) {
      for (MessageReader records(buffer); !records.done();) {
        const std::span<std::byte> storage = held_.storage_of(records.take<Index>());
        std::ranges::copy(records.take_bytes(storage.size()), storage.begin());
      }
    }
    for (Bytes& buffer : send_buffers_) buffer.clear();
  }

  const RecordSource& source_;
  const RecordNeeds& needs_;
  PeerGroup& peers_;
  LoadedRecords& held_;
  RecordHashes* hashes_;
  std::vector<Bytes> send_buffers_;  // of records: the id, then the bytes
  Bytes packed_;
};

}  // namespace

RecordNeeds needed_by_owner(std::function<Index(Index id)> owner, Index count) {
  return {.ranks =
              [owner = std::move(owner)](Index id) {
                const Index rank = owner(id);
                return Range{rank, rank + 1};
              },
          .count = count};
}

std::vector<Range> RecordSource::shares(Index ranks) const {
  return share_chunks(chunks(), ranks);
}

std::vector<Range> share_chunks(std::span<const Chunk> chunks, Index ranks) {
  const Index rows = chunks.empty() ? 0 : chunks.back().records.end;
  std::vector<Range> shares(static_cast<std::size_t>(ranks), {0, 0});
  Index chunk = 0;
  for (Index rank = 0; rank < ranks; ++rank) {
    const Index goal = split_evenly(rows, ranks, rank).end;
    Range& share = at(shares, rank);
    share.begin = chunk;
    // A chunk belongs to the share that its middle lies in, with those that follow on.
    while (chunk < std::ssize(chunks)) {
      const Chunk& next = at(chunks, chunk);
      const bool stays = next.follows_on && chunk > share.begin;
      if (!stays && next.records.begin + (next.records.size() - 1) / 2 >= goal) break;
      ++chunk;
    }
    share.end = chunk;
  }
  return shares;
}

std::unique_ptr<Records> load_records(const RecordSource& source, const TargetRule& rule,
                                      const RecordNeeds& needs, PeerGroup& peers, Fingerprint* fingerprint) {
  if (needs.part == RecordPart::kNothing)
    return std::make_unique<ComputedRecords>(source, 0, RecordPart::kNothing);
  const ReadingRow row(peers.rank() == 0);
  const DatasetInfo& info = source.info();
  if (info.record_bytes == 0) {
    peers.agree([&] { source.reader(rule); });
    if (fingerprint != nullptr && source.fingerprint() != nullptr) *fingerprint = *source.fingerprint();
    return std::make_unique<ComputedRecords>(source, needs.count, needs.part);
  }
  std::unique_ptr<NodeMemory> shared;
  if (needs.everyone) {
    shared =
        peers.share_on_node(info.rows * bytes_of_part(needs.part, info.record_bytes, info.label_columns()));
  }
  std::unique_ptr<LoadedRecords> held;
  peers.agree([&] {
    IdSet mine(info.rows, [&](Index id) { return needs.ranks(id).contains(peers.rank()); });
    assert(mine.size() == needs.count);
    held = std::make_unique<LoadedRecords>(source, std::move(mine), std::move(shared), needs.part);
  });
  RecordHashes hashes(info);
  Loading(source, needs, peers, *held, fingerprint != nullptr ? &hashes : nullptr).run(rule);
  if (fingerprint != nullptr) *fingerprint = hashes.sum(peers);
  held->publish();
  return held;
}

void for_each_record(
    const RecordSource& source, const TargetRule& rule, const PeerGroup& peers,
    const std::function<void(std::span<const Scalar> features, std::span<const Scalar> targets)>& use) {
  const DatasetInfo& info = source.info();
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  Matrix x(features.data(), 1, info.features.size());
  Matrix y(labels.data(), 1, info.label_columns());
  Bytes packed;
  const auto unpack = [&](Range ids) {
    for (Index id = ids.begin; id < ids.end; ++id) {
      const std::byte* record = packed.data() + (id - ids.begin) * info.record_bytes;
      source.unpack({&id, 1}, {&record, 1}, x, y);
      const Index counted = info.has_lengths
                                ? as_sequence(info.features)->channels * static_cast<Index>(labels.back())
                                : x.cols();
      use(std::span(features).first(static_cast<std::size_t>(counted)),
          std::span(labels).first(static_cast<std::size_t>(info.target_columns)));
    }
  };
  const std::unique_ptr<ChunkReader> reader = source.reader(rule);
  if (info.record_bytes == 0) return unpack(split_evenly(info.rows, peers.size(), peers.rank()));
  const Range share = at(source.shares(peers.size()), peers.rank());
  for (Index chunk = share.begin; chunk < share.end; ++chunk) {
    throw_if_stopped();
    const Range records = at(source.chunks(), chunk).records;
    packed.resize(static_cast<std::size_t>(records.size() * info.record_bytes));
    reader->read(chunk, packed);
    unpack(records);
  }
}

IdSet::IdSet(Index rows, const std::function<bool(Index)>& wanted)
    : blocks_(static_cast<std::size_t>((rows + 63) / 64)) {
  for (Index id = 0; id < rows; ++id) {
    Block& block = at(blocks_, id / 64);
    if (id % 64 == 0) block.before = size_;
    if (!wanted(id)) continue;
    block.members |= std::uint64_t{1} << (id % 64);
    ++size_;
  }
}

LoadedRecords::LoadedRecords(const RecordSource& source, IdSet ids, std::unique_ptr<NodeMemory> shared,
                             RecordPart part)
    : source_(source),
      ids_(std::move(ids)),
      part_(part),
      record_bytes_(bytes_of_part(part, source.info().record_bytes, source.info().label_columns())),
      shared_(std::move(shared)),
      own_(shared_ ? 0 : divide_up(ids_.size() * record_bytes_, Index{sizeof(Scalar)})),
      packed_(shared_ ? shared_->bytes()
                      : std::as_writable_bytes(own_.span())
                            .first(static_cast<std::size_t>(ids_.size() * record_bytes_))) {
  own_.ask_for_huge_pages();
}

void LoadedRecords::publish() {
  if (shared_) shared_->publish();
}

std::span<std::byte> LoadedRecords::storage_of(Index id) {
  const Index begin = ids_.position(id) * record_bytes_;
  return part(packed_, {begin, begin + record_bytes_});
}

// In blocks, so that their addresses need no memory. Records come in random order: each is asked for ahead.
void LoadedRecords::gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const {
  if (part_ == RecordPart::kTargets) return gather_targets(ids, targets);
  std::array<const std::byte*, 256> records{};
  for (std::size_t begin = 0; begin < ids.size(); begin += records.size()) {
    const std::span<const Index> block = ids.subspan(begin, std::min(records.size(), ids.size() - begin));
    for (std::size_t i = 0; i < block.size(); ++i) {
      records[i] = packed_.data() + ids_.position(block[i]) * record_bytes_;
      __builtin_prefetch(records[i]);
    }
    const auto row = static_cast<Index>(begin);
    const auto rows = std::ssize(block);
    Matrix block_x(x.data() + row * x.cols(), rows, x.cols());
    Matrix block_targets(targets.data() + row * targets.cols(), rows, targets.cols());
    source_.unpack(block, std::span(records).first(block.size()), block_x, block_targets);
  }
}

void LoadedRecords::gather_targets(std::span<const Index> ids, Matrix& targets) const {
  Scalar* to = targets.data();
  for (const Index id : ids) {
    std::memcpy(to, packed_.data() + ids_.position(id) * record_bytes_,
                static_cast<std::size_t>(record_bytes_));
    to += targets.cols();
  }
}

}  // namespace lockstep
