// A data set whose record `id` is {id, id + 0.5} with the target -id, packed as its id, that counts how often
// each chunk was read.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/data/record_source.h"
#include "support/common.h"

namespace lockstep::test {

class NumberedSource final : public RecordSource {
 public:
  /// `bad`: the id of a record that cannot be read; -1: none.
  NumberedSource(std::vector<Chunk> chunks, Index bad = -1)
      : chunks_(std::move(chunks)), bad_(bad), reads_(chunks_.size()) {
    info_ = {.rows = chunks_.empty() ? 0 : chunks_.back().records.end,
             .features = {{2}},
             .target_columns = 1,
             .name = "numbered",
             .record_bytes = sizeof(Index)};
  }

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule&) const override {
    return std::make_unique<Reader>(*this);
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    for (std::size_t row = 0; row < ids.size(); ++row) {
      Index id = 0;
      std::memcpy(&id, records[row], sizeof id);
      EXPECT_EQ(id, ids[row]);
      const auto i = static_cast<Index>(row);
      x(i, 0) = static_cast<Scalar>(id);
      x(i, 1) = static_cast<Scalar>(id) + Scalar{0.5};
      targets(i, 0) = -static_cast<Scalar>(id);
    }
  }

  /// How often each chunk was read, by any rank of this process.
  std::vector<Index> reads() const { return {reads_.begin(), reads_.end()}; }

 private:
  class Reader final : public ChunkReader {
   public:
    explicit Reader(const NumberedSource& source) : source_(source) {}
    void read(Index chunk, std::span<std::byte> packed) override {
      const Range ids = at(source_.chunks_, chunk).records;
      EXPECT_EQ(std::ssize(packed), ids.size() * Index{sizeof(Index)});
      if (ids.contains(source_.bad_)) throw DataError("record " + std::to_string(source_.bad_) + " is bad");
      ++at(source_.reads_, chunk);
      for (Index id = ids.begin; id < ids.end; ++id)
        std::memcpy(packed.data() + (id - ids.begin) * Index{sizeof id}, &id, sizeof id);
    }

   private:
    const NumberedSource& source_;
  };

  std::vector<Chunk> chunks_;
  Index bad_;
  DatasetInfo info_;
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
