#include "row_reductions.h"

#include <algorithm>

namespace lockstep {
namespace {

// Numbers reduced side by side: fixed lanes, so the compiler may vectorise without reordering.
constexpr std::size_t kLanes = 16;

}  // namespace

double row_sum(std::span<const Scalar> row) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(row[i + lane]);
  }
  for (; i < row.size(); ++i) lanes[i % kLanes] += static_cast<double>(row[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

Scalar row_max(std::span<const Scalar> row) {
  Scalar lanes[kLanes];
  std::ranges::fill(lanes, row[0]);
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = std::max(lanes[lane], row[i + lane]);
  }
  for (; i < row.size(); ++i) lanes[0] = std::max(lanes[0], row[i]);
  return *std::ranges::max_element(lanes);
}

}  // namespace lockstep
