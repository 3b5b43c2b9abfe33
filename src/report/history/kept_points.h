// Which points of a long series a chart shows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// Indices in ascending order, at most `max_points` (at least 4), of the first and the last value and of the
/// least and the greatest one of each bucket of equally many; all of them where there are no more. A bucket
/// without a number gives its first index, so that the gap stays.
std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t max_points);

}  // namespace lockstep
