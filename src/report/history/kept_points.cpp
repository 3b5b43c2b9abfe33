#include "kept_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep {

std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t max_points) {
  std::vector<std::size_t> kept;
  if (values.size() <= max_points) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t buckets = (max_points - 2) / 2;
  kept.push_back(0);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = values.size() * bucket / buckets;
    const std::size_t end = values.size() * (bucket + 1) / buckets;
    std::size_t least = begin;
    std::size_t greatest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!std::isfinite(values[least]) || values[i] < values[least]) least = i;
      if (!std::isfinite(values[greatest]) || values[i] > values[greatest]) greatest = i;
    }
    kept.push_back(std::min(least, greatest));
    kept.push_back(std::max(least, greatest));
  }
  kept.push_back(values.size() - 1);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

}  // namespace lockstep
