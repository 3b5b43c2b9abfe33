#include "lockstep/report/uneven_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

// A class whose share differs by more than this, and by more than chance explains, is worth a word.
constexpr double kMuch = 0.1;
constexpr double kDeviations = 5;

double samples_of(const ClassCounts& counts) {
  double samples = 0;
  for (const auto& [label, count] : counts) samples += count;
  return samples;
}

}  // namespace

std::string describe_uneven_shards(std::span<const ClassCounts> shards) {
  ClassCounts whole;
  for (const ClassCounts& shard : shards) {
    for (const auto& [label, count] : shard) whole[label] += count;
  }
  const double samples = samples_of(whole);
  for (std::size_t replica = 0; replica < shards.size(); ++replica) {
    const double size = samples_of(shards[replica]);
    if (size == 0) continue;
    for (const auto& [label, count] : whole) {
      const auto found = shards[replica].find(label);
      const double share = found == shards[replica].end() ? 0 : found->second / size;
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
