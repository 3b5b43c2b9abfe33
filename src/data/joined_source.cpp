#include "joined_source.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

struct PartChunk {
  std::size_t part;
  Index chunk;
};

// Keeps the files of one part open at a time.
class JoinedReader final : public ChunkReader {
 public:
  JoinedReader(std::span<const std::unique_ptr<RecordSource>> parts, std::span<const PartChunk> part_chunks,
               const TargetRule& rule)
      : parts_(parts), part_chunks_(part_chunks), rule_(rule) {}

  void read(Index chunk, std::span<std::byte> packed) override {
    const PartChunk& where = at(part_chunks_, chunk);
    if (!reader_ || where.part != part_) {
      reader_.reset();
      reader_ = parts_[where.part]->reader(rule_);
      part_ = where.part;
    }
    reader_->read(where.chunk, packed);
  }

 private:
  std::span<const std::unique_ptr<RecordSource>> parts_;
  std::span<const PartChunk> part_chunks_;
  TargetRule rule_;
  std::size_t part_ = 0;
  std::unique_ptr<ChunkReader> reader_;
};

class JoinedSource final : public RecordSource {
 public:
  JoinedSource(std::vector<std::unique_ptr<RecordSource>> parts, const std::string& name)
      : parts_(std::move(parts)), info_(parts_.front()->info()) {
    info_.name = name;
    info_.rows = 0;
    info_.source_bytes = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) add(part);
  }

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    return std::make_unique<JoinedReader>(parts_, part_chunks_, rule);
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    parts_.front()->unpack(ids, records, x, targets);
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    for (const auto& part : parts_) {
      for (const std::string& file : part->files()) all.push_back(file);
    }
    return all;
  }
  std::string file_of(const Chunk& chunk) const override { return at(parts_, chunk.file)->files().front(); }

 private:
  void add(std::size_t part) {
    const RecordSource& source = *parts_[part];
    const DatasetInfo& added = source.info();
    if (added.features != info_.features || added.label_columns() != info_.label_columns() ||
        added.record_bytes != info_.record_bytes) {
      throw DataError(fmt::format(
          "records of '{}' have {} features and {} targets in {} bytes, those of '{}' have {} and {} in {}: "
          "all files of a data set must have the same",
          parts_.front()->info().name, to_string(info_.features), info_.target_columns, info_.record_bytes,
          added.name, to_string(added.features), added.target_columns, added.record_bytes));
    }
    const std::span<const Chunk> chunks = source.chunks();
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Range records = chunks[i].records;
      chunks_.push_back({.records = {info_.rows + records.begin, info_.rows + records.end},
                         .follows_on = chunks[i].follows_on,
                         .file = static_cast<Index>(part)});
      part_chunks_.push_back({part, static_cast<Index>(i)});
    }
    info_.rows += added.rows;
    info_.source_bytes += added.source_bytes;
  }

  std::vector<std::unique_ptr<RecordSource>> parts_;
  DatasetInfo info_;
  std::vector<Chunk> chunks_;
  std::vector<PartChunk> part_chunks_;
};

}  // namespace

std::unique_ptr<RecordSource> join_sources(std::vector<std::unique_ptr<RecordSource>> parts,
                                           const std::string& name) {
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<JoinedSource>(std::move(parts), name);
}

}  // namespace lockstep
