#include "shard_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "lockstep/data/sampler.h"

namespace lockstep {
namespace {

// Of packed records that are looked at.
constexpr Index kMaxBytes = Index{64} << 20;
// A class whose share differs by more than this, and by more than chance explains, is worth a word.
constexpr double kMuch = 0.1;
constexpr double kDeviations = 5;

// Counts of the classes that occur in the samples of each replica, by class. (A model may have 10^9 outputs.)
using Counts = std::vector<std::map<Index, double>>;

// Chunks at even distances, so that all parts of the files are seen.
std::vector<Index> chosen_chunks(const RecordSource& source) {
  const auto chunks = static_cast<Index>(source.chunks().size());
  const Index bytes = source.info().rows * source.info().record_bytes;
  const Index every = std::max<Index>(1, divide_up(bytes, kMaxBytes));
  std::vector<Index> chosen;
  for (Index chunk = 0; chunk < chunks; chunk += every) chosen.push_back(chunk);
  return chosen;
}

Counts count_classes(const Experiment& experiment, const Sampler& sampler, Index replicas) {
  const RecordSource& source = *experiment.train;
  const DatasetInfo& info = source.info();
  const std::unique_ptr<ChunkReader> reader = source.reader(experiment.target_rule());
  Counts counts(static_cast<std::size_t>(replicas));
  std::vector<std::byte> packed;
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  Matrix x(features.data(), 1, info.features.size());
  Matrix targets(labels.data(), 1, info.label_columns());
  for (const Index chunk : chosen_chunks(source)) {
    const Range ids = source.chunks()[static_cast<std::size_t>(chunk)].records;
    packed.resize(static_cast<std::size_t>(ids.size() * info.record_bytes));
    reader->read(chunk, packed);
    for (Index id = ids.begin; id < ids.end; ++id) {
      const std::byte* record = packed.data() + (id - ids.begin) * info.record_bytes;
      source.unpack({&id, 1}, {&record, 1}, x, targets);
      const auto replica = static_cast<std::size_t>(sampler.replicas_of(id).begin);
      counts[replica][static_cast<Index>(labels.front())] += 1;
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
  const Counts counts = count_classes(experiment, *sampler, sampling.replicas);
  std::map<Index, double> whole;
  double samples = 0;
  for (const auto& shard : counts) {
    for (const auto& [label, count] : shard) {
      whole[label] += count;
      samples += count;
    }
  }
  for (std::size_t replica = 0; replica < counts.size(); ++replica) {
    double size = 0;
    for (const auto& [label, count] : counts[replica]) size += count;
    if (size == 0) continue;
    for (const auto& [label, count] : whole) {
      const auto found = counts[replica].find(label);
      const double share = found == counts[replica].end() ? 0 : found->second / size;
      const double expected = count / samples;
      const double chance = kDeviations * std::sqrt(expected * (1 - expected) / size);
      if (std::abs(share - expected) <= std::max(kMuch, chance)) continue;
      return fmt::format(
          "WARNING: the shards are not alike: class {} makes {:.1f} % of the shard of replica {}, but {:.1f} "
          "% of all samples. Training on such shards is biased: choose data.shard_order = shuffled with "
          "data.memory = load, or data.reshuffle = global, or shuffle the file\n",
          label, 100 * share, replica, 100 * expected);
    }
  }
  return "";
}

}  // namespace lockstep
