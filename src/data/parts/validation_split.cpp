#include "lockstep/data/parts/validation_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/math/matrix.h"

namespace lockstep {
namespace {

// Records of the sets that are held back, which the reading of another set has passed by, until they are
// asked for: so all sets are loaded in one pass.
class PassedBy {
 public:
  // Whether anyone will ask for those of a set.
  void expect(Split split, bool wanted) {
    const std::lock_guard lock(mutex_);
    sets_[split].wanted = wanted;
    if (!wanted) sets_[split].chunks.clear();
  }
  // The sets but `own` that are asked for.
  std::vector<Split> expected(Split own) {
    const std::lock_guard lock(mutex_);
    std::vector<Split> splits;
    for (const auto& [split, set] : sets_) {
      if (split != own && set.wanted) splits.push_back(split);
    }
    return splits;
  }
  void keep(Split split, Index chunk, const std::vector<std::byte>& packed) {
    const std::lock_guard lock(mutex_);
    if (!sets_[split].wanted) return;
    const Index scalars = divide_up(std::ssize(packed), Index{sizeof(Scalar)});
    const auto [kept, is_new] = sets_[split].chunks.emplace(chunk, PageMemory(scalars));
    std::ranges::copy(packed, std::as_writable_bytes(kept->second.span()).begin());
  }
  // Some record that was read so far lacks a target.
  void note_missing() { missing_ = true; }
  // False if they are not there.
  bool take(Split split, Index chunk, std::span<std::byte> packed, const TargetRule& rule) {
    const std::lock_guard lock(mutex_);
    auto& chunks = sets_[split].chunks;
    const auto found = chunks.find(chunk);
    if (found == chunks.end()) return false;
    std::ranges::copy(std::as_bytes(found->second.span()).first(packed.size()), packed.begin());
    chunks.erase(found);
    if (missing_ && rule.any_missing != nullptr) *rule.any_missing = true;
    return true;
  }

 private:
  struct Set {
    bool wanted = false;
    std::map<Index, PageMemory> chunks = {};  // by number among those of the whole; given back one by one
  };
  std::mutex mutex_;
  std::map<Split, Set> sets_;
  std::atomic<bool> missing_ = false;
};

class PartSource final : public RecordSource {
 public:
  PartSource(std::shared_ptr<const RecordSource> whole, HoldOut held, Split split,
             std::shared_ptr<PassedBy> passed_by)
      : whole_(std::move(whole)), held_(std::move(held)), split_(split), passed_by_(std::move(passed_by)) {
    if (!trains()) passed_by_->expect(split_, true);
    info_ = whole_->info();
    info_.rows = 0;
    const std::span<const Chunk> chunks = whole_->chunks();
    for (std::size_t i = 0; i < chunks.size(); ++i) add(chunks[i], static_cast<Index>(i));
  }

  ~PartSource() override { passed_by_->expect(split_, false); }

  std::string schema() const override { return whole_->schema(); }
  // Told once, by the part to train on; the other one says how it was chosen.
  std::vector<Note> notes() const override {
    if (trains()) return whole_->notes();
    const Note& note = split_ == Split::kTest ? held_.test_note : held_.note;
    return note.text.empty() ? std::vector<Note>{} : std::vector{note};
  }
  std::vector<std::string> doubts() const override {
    return trains() ? whole_->doubts() : std::vector<std::string>{};
  }
  std::vector<std::string> rejects() const override {
    return trains() ? whole_->rejects() : std::vector<std::string>{};
  }
  std::vector<Scalar> lengths() const override {
    const std::vector<Scalar> all = whole_->lengths();
    std::vector<Scalar> own;
    for (Index id = 0; id < std::ssize(all); ++id) {
      if (takes(id)) own.push_back(at(all, id));
    }
    return own;
  }
  std::vector<std::string> files() const override { return whole_->files(); }
  std::string file_of(const Chunk& chunk) const override { return whole_->file_of(chunk); }
  std::span<const Index> skipped() const override { return whole_->skipped(); }
  Index position(Index id) const override {
    const auto holds = [&](const Chunk& chunk) { return chunk.records.contains(id); };
    const auto chunk = std::ranges::find_if(chunks_, holds);
    const Index first = at(positions_, chunk - chunks_.begin());
    Index position = at(whole_->chunks(), first).records.begin;
    for (Index left = id - chunk->records.begin; left > 0 || !takes(position); ++position) {
      if (takes(position)) --left;
    }
    return whole_->position(position);
  }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    return std::make_unique<Reader>(*this, rule, false);
  }
  std::unique_ptr<ChunkReader> reader_of_share(const TargetRule& rule) const override {
    return std::make_unique<Reader>(*this, rule, true);
  }
  // The shares of the whole, so that a rank finds what it has passed by.
  std::vector<Range> shares(Index ranks) const override {
    std::vector<Range> shares = whole_->shares(ranks);
    for (Range& share : shares) {
      for (Index* border : {&share.begin, &share.end})
        *border = std::ranges::lower_bound(positions_, *border) - positions_.begin();
    }
    return shares;
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    whole_->unpack(ids, records, x, targets);
  }

 private:
  // Reads whole chunks, and keeps the records of the part. `once`: it reads each chunk of a share once.
  class Reader final : public ChunkReader {
   public:
    Reader(const PartSource& part, const TargetRule& rule, bool once)
        : part_(part), rule_(rule), once_(once), reader_(part.whole_->reader(rule)) {
      if (!once) return;
      for (const Split split : part.passed_by_->expected(part.split_)) others_[split];
    }
    ~Reader() override {
      if (once_) part_.passed_by_->expect(part_.split_, false);
    }

    void read(Index chunk, std::span<std::byte> packed) override {
      const Index position = at(part_.positions_, chunk);
      if (once_ && part_.passed_by_->take(part_.split_, position, packed, rule_)) return;
      const Range records = at(part_.whole_->chunks(), position).records;
      const auto bytes = static_cast<std::size_t>(part_.info_.record_bytes);
      all_.resize(static_cast<std::size_t>(records.size()) * bytes);
      reader_->read(position, all_);
      if (rule_.any_missing != nullptr && *rule_.any_missing) part_.passed_by_->note_missing();
      std::byte* to = packed.data();
      for (Index id = records.begin; id < records.end; ++id) {
        const std::byte* record = all_.data() + static_cast<std::size_t>(id - records.begin) * bytes;
        if (part_.takes(id)) {
          std::memcpy(to, record, bytes);
          to += bytes;
          continue;
        }
        for (auto& [split, others] : others_) {
          if (part_.held_.takes(split, id)) others.insert(others.end(), record, record + bytes);
        }
      }
      for (auto& [split, others] : others_) {
        if (!others.empty()) part_.passed_by_->keep(split, position, others);
        others.clear();
      }
    }

   private:
    const PartSource& part_;
    TargetRule rule_;
    bool once_;
    std::map<Split, std::vector<std::byte>> others_;  // of a chunk, the records of other sets
    std::unique_ptr<ChunkReader> reader_;
    std::vector<std::byte> all_;
  };

  bool trains() const { return split_ == Split::kTrain; }
  bool takes(Index id) const { return held_.takes(split_, id); }
  void add(const Chunk& chunk, Index position) {
    const Index begin = info_.rows;
    for (Index id = chunk.records.begin; id < chunk.records.end; ++id) info_.rows += takes(id) ? 1 : 0;
    if (info_.rows == begin) return;
    const bool first_of_file = chunks_.empty() || chunks_.back().file != chunk.file;
    chunks_.push_back({.records = {begin, info_.rows},
                       .follows_on = chunk.follows_on && !first_of_file,
                       .file = chunk.file});
    positions_.push_back(position);
  }

  std::shared_ptr<const RecordSource> whole_;
  HoldOut held_;
  Split split_;
  std::shared_ptr<PassedBy> passed_by_;
  std::vector<Index> positions_;  // index of each chunk among those of the whole
};

}  // namespace

DataSets split_validation(std::unique_ptr<RecordSource> whole, const HoldOut& held) {
  const std::shared_ptr<const RecordSource> shared = std::move(whole);
  HoldOut noted = held;
  const auto passed_by = std::make_shared<PassedBy>();
  const auto part = [&](Split split) {
    return std::make_unique<PartSource>(shared, noted, split, passed_by);
  };
  DataSets parts{.train = part(Split::kTrain), .held = held};
  if (!held.fold_of) {
    const Index rows = shared->info().rows;
    const Index taken = rows - parts.train->info().rows;
    noted.note = {
        .text = fmt::format("validation set, {}: {} of the {} records of '{}', by a hash of their numbers",
                            held.setting, with_commas(taken), with_commas(rows), shared->info().name),
        .figures = {{"part", {{"records", taken}, {"of", rows}}}}};
  }
  if (held.fold != kNoFold) parts.validation = part(Split::kValidation);
  if (held.fold_of && std::ranges::count(*held.fold_of, kTestFold) > 0) parts.test = part(Split::kTest);
  const Index validates = parts.validation ? parts.validation->info().rows : 0;
  if (parts.train->info().rows > 0 && (validates > 0 || !parts.validation)) return parts;
  throw ConfigError(
      "{} leaves {} of the {} records of '{}' to train on and {} for validation: expected some of each",
      held.setting, parts.train->info().rows, shared->info().rows, shared->info().name, validates);
}

std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers) {
  std::vector<Index> mine(static_cast<std::size_t>(classes));
  peers.agree([&] {
    for_each_record(source, rule, peers, [&](std::span<const Scalar>, std::span<const Scalar> targets) {
      if (rule.positions == 0) ++at(mine, class_of(targets));
      for (std::size_t i = 0; i < targets.size() && rule.positions > 0; ++i) {
        if (!std::isnan(targets[i])) ++at(mine, class_of(targets.subspan(i, 1)));
      }
    });
  });
  return sum_over_ranks(mine, peers);
}

}  // namespace lockstep
