// A data set whose samples are computed, with a weight for each.
#pragma once

#include "lockstep/data/record_source.h"
#include "support/common.h"

namespace lockstep::test {

/// The weight of a sample by its id: "ones"; "some" (0 to 1.5); "few" (most are 0); "none" (all are 0).
inline Scalar weight_of(const std::string& kind, Index id) {
  if (kind == "ones") return 1;
  if (kind == "some") return static_cast<Scalar>(id * 5 % 7) / 4;
  if (kind == "few") return id % 29 == 0 ? 2.5F : 0.F;
  return 0;
}

class WeightedSource final : public RecordSource {
 public:
  /// `plain`: its records are computed from their ids, and have one target.
  WeightedSource(std::unique_ptr<RecordSource> plain, std::string kind)
      : plain_(std::move(plain)), kind_(std::move(kind)), info_(plain_->info()) {
    info_.weighted = true;
  }

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return plain_->chunks(); }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override { return plain_->reader(rule); }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& labels) const override {
    std::vector<Scalar> targets(ids.size());
    Matrix column(targets.data(), std::ssize(ids), 1);
    plain_->unpack(ids, records, x, column);
    for (std::size_t row = 0; row < ids.size(); ++row) {
      labels(static_cast<Index>(row), 0) = targets[row];
      labels(static_cast<Index>(row), 1) = weight_of(kind_, ids[row]);
    }
  }

 private:
  std::unique_ptr<RecordSource> plain_;
  std::string kind_;
  DatasetInfo info_;
};

}  // namespace lockstep::test
