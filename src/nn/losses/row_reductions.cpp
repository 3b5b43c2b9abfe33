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
  const auto take = [](Scalar& most, Scalar value) { most = most < value ? value : most; };
  Scalar lanes[kLanes];
  std::ranges::fill(lanes, row[0]);
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(lanes[lane], row[i + lane]);
  }
  for (; i < row.size(); ++i) take(lanes[0], row[i]);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) take(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

}  // namespace lockstep
