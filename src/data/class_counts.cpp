#include "lockstep/data/class_counts.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "lockstep/base/stop_signal.h"
#include "lockstep/data/load_records.h"
#include "lockstep/math/matrix.h"

namespace lockstep {
namespace {

class Counting {
 public:
  Counting(const RecordSource& source, Index classes)
      : source_(source),
        info_(source.info()),
        targets_(static_cast<std::size_t>(info_.target_columns)),
        counts_(static_cast<std::size_t>(classes)) {}

  // The labels are the end of a packed record.
  void read(ChunkReader& reader, Index chunk) {
    const Index records = at(source_.chunks(), chunk).records.size();
    packed_.resize(static_cast<std::size_t>(records * info_.record_bytes));
    reader.read(chunk, packed_);
    const Index labels = info_.record_bytes - info_.label_columns() * Index{sizeof(Scalar)};
    for (Index i = 0; i < records; ++i) {
      const std::byte* from = packed_.data() + i * info_.record_bytes + labels;
      std::memcpy(targets_.data(), from, targets_.size() * sizeof(Scalar));
      ++at(counts_, class_of(targets_));
    }
  }

  // Records that are computed from their ids.
  void compute(Range ids) {
    std::vector<Scalar> features(static_cast<std::size_t>(info_.features.size()));
    Matrix x(features.data(), 1, info_.features.size());
    std::vector<Scalar> labels(static_cast<std::size_t>(info_.label_columns()));
    Matrix row(labels.data(), 1, info_.label_columns());
    for (Index id = ids.begin; id < ids.end; ++id) {
      source_.unpack({&id, 1}, {}, x, row);
      ++at(counts_, class_of(std::span<const Scalar>(labels).first(targets_.size())));
    }
  }

  const std::vector<Index>& counts() const { return counts_; }

 private:
  const RecordSource& source_;
  const DatasetInfo& info_;
  std::vector<Scalar> targets_;
  std::vector<Index> counts_;
  Bytes packed_;
};

}  // namespace

std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers) {
  Counting counting(source, classes);
  peers.agree([&] {
    const std::unique_ptr<ChunkReader> reader = source.reader(rule);
    if (source.info().record_bytes == 0) {
      return counting.compute(split_evenly(source.info().rows, peers.size(), peers.rank()));
    }
    const Range mine = at(share_chunks(source.chunks(), peers.size()), peers.rank());
    for (Index chunk = mine.begin; chunk < mine.end; ++chunk) {
      throw_if_stopped();
      counting.read(*reader, chunk);
    }
  });
  std::vector<Index> all(counting.counts().size());
  std::vector<Index> theirs(all.size());
  for (const Bytes& bytes : peers.all_gather(std::as_bytes(std::span(counting.counts())))) {
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    std::ranges::transform(all, theirs, all.begin(), std::plus<>());
  }
  return all;
}

}  // namespace lockstep
