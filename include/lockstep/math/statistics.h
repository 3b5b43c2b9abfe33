// Statistics of many numbers: moments by channel, and counts in bins.
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

// Means and variances of channels from sums that can be added over batches, replicas and ranks in any
// grouping. Sums are taken around a shift near the mean and in double, so that nothing cancels (Chan, Golub &
// LeVeque 1983).

/// Moments by channel. The variance is that of the values themselves (divided by their count).
struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;
};

/// The layout of `sums`: the count of values per channel, then for each channel the sum of x - shift, then
/// for each channel the sum of its square. x: rows of values, channels last (images have several pixels in
/// a row). Rows are added first to last.
void sum_moments(const ConstMatrix& x, std::span<const Scalar> shift, std::span<double> sums);

/// The moments behind such sums, of one batch or of several added. Zero where the count is zero.
Moments moments_of(std::span<const double> sums, std::span<const Scalar> shift);

/// For each channel the sum of dy, then for each channel the sum of dy (x - shift).
void sum_products(const ConstMatrix& x, std::span<const Scalar> shift, const ConstMatrix& dy,
                  std::span<double> sums);

// The bins in which the numbers of a tensor are counted.

/// Bins of a histogram: two for each power of two between 2^-40 and 2^20, of either sign, and one for what is
/// nearer to zero. Larger numbers are in the outer bins.
inline constexpr Index kHistogramBins = 241;

/// The bin of a number, 0 for the most negative.
Index histogram_bin(Scalar value);
/// The upper end of a bin.
double histogram_limit(Index bin);

}  // namespace lockstep
