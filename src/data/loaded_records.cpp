#include "loaded_records.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace lockstep {

LoadedRecords::LoadedRecords(const RecordSource& source, IdSet ids, std::unique_ptr<NodeMemory> shared,
                             RecordPart part)
    : source_(source),
      ids_(std::move(ids)),
      part_(part),
      record_bytes_(bytes_of_part(part, source.info().record_bytes, source.info().label_columns())),
      shared_(std::move(shared)),
      own_(shared_ ? 0 : ids_.size() * record_bytes_),
      packed_(shared_ ? shared_->bytes() : own_.span()) {}

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
