// A data set whose record `id` is {id, id + 0.5} with the target -id, packed as its id, that counts how often
// each chunk was read.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/data/record_source.h"
#include "support/common.h"

namespace lockstep::test {

/// A data set whose records are computed from their ids, which are what is packed of them.
class ComputedSource : public RecordSource {
 public:
  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule&) const override {
    return std::make_unique<Reader>(*this);
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    for (Index row = 0; row < std::ssize(records); ++row) {
      Index id = 0;
      std::memcpy(&id, at(records, row), sizeof id);
      EXPECT_EQ(id, at(ids, row));
      compute(id, row, x, targets);
    }
  }

 protected:
  /// Of `info` all but the rows and the bytes of a record is given.
  ComputedSource(DatasetInfo info, std::vector<Chunk> chunks)
      : chunks_(std::move(chunks)), info_(std::move(info)) {
    info_.rows = chunks_.empty() ? 0 : chunks_.back().records.end;
    info_.record_bytes = sizeof(Index);
  }
  virtual void compute(Index id, Index row, Matrix& x, Matrix& targets) const = 0;
  virtual void before_read(Index /*chunk*/) const {}

 private:
  class Reader final : public ChunkReader {
   public:
    explicit Reader(const ComputedSource& source) : source_(source) {}
    void read(Index chunk, std::span<std::byte> packed) override {
      source_.before_read(chunk);
      const Range ids = at(source_.chunks_, chunk).records;
      EXPECT_EQ(std::ssize(packed), ids.size() * Index{sizeof(Index)});
      for (Index id = ids.begin; id < ids.end; ++id)
        std::memcpy(packed.data() + (id - ids.begin) * Index{sizeof id}, &id, sizeof id);
    }

   private:
    const ComputedSource& source_;
  };
  std::vector<Chunk> chunks_;
  DatasetInfo info_;
};

class NumberedSource final : public ComputedSource {
 public:
  /// `bad`: the id of a record that cannot be read; -1: none.
  explicit NumberedSource(std::vector<Chunk> all, Index bad = -1)
      : ComputedSource({.features = {{2}}, .target_columns = 1, .name = "numbered"}, std::move(all)),
        bad_(bad),
        reads_(chunks().size()) {}

  /// How often each chunk was read, by any rank of this process.
  std::vector<Index> reads() const { return {reads_.begin(), reads_.end()}; }

 private:
  void compute(Index id, Index row, Matrix& x, Matrix& targets) const override {
    x(row, 0) = static_cast<Scalar>(id);
    x(row, 1) = static_cast<Scalar>(id) + Scalar{0.5};
    targets(row, 0) = -static_cast<Scalar>(id);
  }
  void before_read(Index chunk) const override {
    if (at(chunks(), chunk).records.contains(bad_))
      throw DataError("record " + std::to_string(bad_) + " is bad");
    ++at(reads_, chunk);
  }

  Index bad_;
  mutable std::vector<std::atomic<Index>> reads_;
};

/// So many records in chunks of `size`.
inline std::vector<Chunk> chunks_of(Index rows, Index size, bool follow_on = false) {
  std::vector<Chunk> chunks;
  for (Index begin = 0; begin < rows; begin += size)
    chunks.push_back({{begin, std::min(begin + size, rows)}, follow_on && begin > 0});
  return chunks;
}

}  // namespace lockstep::test
