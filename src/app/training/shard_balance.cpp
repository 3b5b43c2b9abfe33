#include "shard_balance.h"

#include <algorithm>
#include <vector>

#include "lockstep/data/sampler.h"
#include "lockstep/report/uneven_shards.h"

namespace lockstep {
namespace {

// Bytes of packed records that are looked at.
constexpr Index kMaxBytes = Index{64} << 20;

// Chunks at even distances, so that all parts of the files are seen.
std::vector<Index> chosen_chunks(const RecordSource& source) {
  const auto chunks = std::ssize(source.chunks());
  const Index bytes = source.info().rows * source.info().record_bytes;
  const Index every = std::max<Index>(1, divide_up(bytes, kMaxBytes));
  std::vector<Index> chosen;
  for (Index chunk = 0; chunk < chunks; chunk += every) chosen.push_back(chunk);
  return chosen;
}

std::vector<ClassCounts> count_classes(const Experiment& experiment, const Sampler& sampler, Index replicas) {
  const RecordSource& source = *experiment.train;
  const DatasetInfo& info = source.info();
  const std::unique_ptr<ChunkReader> reader = source.reader(experiment.target_rule());
  std::vector<ClassCounts> counts(static_cast<std::size_t>(replicas));
  std::vector<std::byte> packed;
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  const auto target_columns = static_cast<std::size_t>(info.target_columns);
  Matrix x(features.data(), 1, info.features.size());
  Matrix targets(labels.data(), 1, info.label_columns());
  for (const Index chunk : chosen_chunks(source)) {
    const Range ids = at(source.chunks(), chunk).records;
    packed.resize(static_cast<std::size_t>(ids.size() * info.record_bytes));
    reader->read(chunk, packed);
    for (Index id = ids.begin; id < ids.end; ++id) {
      const std::byte* record = packed.data() + (id - ids.begin) * info.record_bytes;
      source.unpack({&id, 1}, {&record, 1}, x, targets);
      const auto replica = static_cast<std::size_t>(sampler.replicas_of(id).begin);
      counts[replica][class_of(std::span(labels).first(target_columns))] += 1;
    }
  }
  return counts;
}

}  // namespace

std::string warn_of_uneven_shards(const Experiment& experiment, const SamplingOptions& sampling) {
  const bool by_chance = sampling.mode == DataMode::kFull || sampling.reshuffle == Reshuffle::kGlobal ||
                         (!sampling.stream && sampling.shard_order == ShardOrder::kShuffled) ||
                         sampling.replicas == 1;
  if (by_chance || experiment.loss->targets() != TargetKind::kClass) return "";
  if (experiment.train->info().record_bytes == 0) return "";
  const auto sampler = make_sampler(sampling);
  return describe_uneven_shards(count_classes(experiment, *sampler, sampling.replicas));
}

}  // namespace lockstep
