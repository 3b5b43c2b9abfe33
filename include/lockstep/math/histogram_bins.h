// The bins in which the numbers of a tensor are counted.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

/// Bins of a histogram: two for each power of two between 2^-40 and 2^20, of either sign, and one for what is
/// nearer to zero. Larger numbers are in the outer bins.
inline constexpr Index kHistogramBins = 241;

/// The bin of a number, 0 for the most negative.
Index histogram_bin(Scalar value);
/// The upper end of a bin.
double histogram_limit(Index bin);

}  // namespace lockstep
