// The piecewise linear encoding of a number (Gorishniy, Rubachev & Babenko 2022): a feature for each bin,
// which is 0 for numbers below the bin, 1 for those above, and rises linearly inside. Numbers beyond the
// first and the last edge are encoded as these.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The bin that a number lies in, from 0 on, and as a fraction how far in it. Requires edges, increasing; 0
/// if there is a single one.
inline double bin_position(const std::vector<double>& edges, double x) {
  if (!(x > edges.front())) return 0;
  if (x >= edges.back()) return static_cast<double>(edges.size() - 1);
  const auto above = std::upper_bound(edges.begin(), edges.end(), x);
  const double low = *(above - 1);
  return static_cast<double>(above - 1 - edges.begin()) + (x - low) / (*above - low);
}

/// The number at a position: bin_position() the other way, between the first and the last edge.
inline double number_at(const std::vector<double>& edges, double position) {
  const auto bin = static_cast<std::size_t>(position);
  if (bin + 1 >= edges.size()) return edges.back();
  return edges[bin] + (position - static_cast<double>(bin)) * (edges[bin + 1] - edges[bin]);
}

/// The features of a position among `bins` bins.
inline void put_bins(Scalar position, Index bins, Scalar* features) {
  for (Index i = 0; i < bins; ++i)
    features[i] = std::clamp(position - static_cast<Scalar>(i), Scalar{0}, Scalar{1});
}

/// The position of a number of a column that has bins.
double bin_position_of(const TableColumn& column, double number);
/// The position of a missing number: of column.fill or, without it, of the mean.
double missing_position(const TableColumn& column);

}  // namespace lockstep
