#include "lockstep/math/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace lockstep {
namespace {

// Channels whose sums stay in registers while a few rows of them, which stay in the cache, go by.
constexpr std::size_t kMomentLanes = 16;
constexpr std::size_t kRows = 64;

// Calls add(row, channel, lane) for all values of `rows` x `channels`, each channel's rows in order;
// begin(channel, lanes) and end(channel, lanes) enclose a few rows of up to kMomentLanes channels.
template <class Begin, class Add, class End>
void walk_lanes(std::size_t rows, std::size_t channels, const Begin& begin, const Add& add, const End& end) {
  for (std::size_t first = 0; first < rows; first += kRows) {
    const std::size_t last = std::min(first + kRows, rows);
    std::size_t channel = 0;
    for (; channel + kMomentLanes <= channels; channel += kMomentLanes) {
      begin(channel, kMomentLanes);
      for (std::size_t row = first; row < last; ++row) {
        for (std::size_t lane = 0; lane < kMomentLanes; ++lane) add(row, channel + lane, lane);
      }
      end(channel, kMomentLanes);
    }
    if (channel == channels) continue;
    begin(channel, channels - channel);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t lane = 0; channel + lane < channels; ++lane) add(row, channel + lane, lane);
    }
    end(channel, channels - channel);
  }
}

// Two sums of each channel, added up by add(row, channel, sum, other).
template <class Add>
void sum_twice(std::size_t rows, std::span<double> sums, std::span<double> others, const Add& add) {
  std::array<double, kMomentLanes> sum;
  std::array<double, kMomentLanes> other;
  walk_lanes(
      rows, sums.size(),
      [&](std::size_t channel, std::size_t lanes) {
        std::copy_n(sums.data() + channel, lanes, sum.data());
        std::copy_n(others.data() + channel, lanes, other.data());
      },
      [&](std::size_t row, std::size_t channel, std::size_t lane) {
        add(row * sums.size() + channel, channel, sum[lane], other[lane]);
      },
      [&](std::size_t channel, std::size_t lanes) {
        std::copy_n(sum.data(), lanes, sums.data() + channel);
        std::copy_n(other.data(), lanes, others.data() + channel);
      });
}

constexpr int kSmallestExponent = -40;
constexpr int kLargestExponent = 20;
constexpr Index kBinsOfASign = 2 * (kLargestExponent - kSmallestExponent);
static_assert(kHistogramBins == 2 * kBinsOfASign + 1);

// From 0 on, of a number of at least 2^kSmallestExponent: the exponent and the first bit behind the point.
Index bin_of_magnitude(Scalar magnitude) {
  constexpr Index kBias = 127;
  const auto bits = static_cast<Index>(std::bit_cast<std::uint32_t>(magnitude) >> 22U);
  return std::min(bits - 2 * (kBias + kSmallestExponent), kBinsOfASign - 1);
}

// The upper end of a bin of magnitudes.
double magnitude_limit(Index bin) {
  const auto exponent = static_cast<int>(bin / 2) + kSmallestExponent;
  return std::ldexp(bin % 2 == 0 ? 1.5 : 2.0, exponent);
}

}  // namespace

void sum_moments(const ConstMatrix& x, std::span<const Scalar> shift, std::span<double> sums) {
  const std::size_t channels = shift.size();
  const auto rows = static_cast<std::size_t>(x.size()) / channels;
  std::ranges::fill(sums, 0.0);
  sum_twice(
      rows, sums.subspan(1, channels), sums.subspan(1 + channels),
      [values = x.data(), around = shift.data()](std::size_t i, std::size_t c, double& sum, double& square) {
        const double off = static_cast<double>(values[i]) - static_cast<double>(around[c]);
        sum += off;
        square += off * off;
      });
  sums[0] = static_cast<double>(rows);
}

Moments moments_of(std::span<const double> sums, std::span<const Scalar> shift) {
  const std::size_t channels = shift.size();
  Moments moments{std::vector<double>(channels), std::vector<double>(channels)};
  const double count = sums[0];
  if (count == 0) return moments;
  for (std::size_t c = 0; c < channels; ++c) {
    const double off = sums[1 + c] / count;
    moments.mean[c] = static_cast<double>(shift[c]) + off;
    const double variance = sums[1 + channels + c] / count - off * off;
    moments.variance[c] = variance < 0 ? 0 : variance;  // NaN stays NaN
  }
  return moments;
}

void sum_products(const ConstMatrix& x, std::span<const Scalar> shift, const ConstMatrix& dy,
                  std::span<double> sums) {
  const std::size_t channels = shift.size();
  std::ranges::fill(sums, 0.0);
  sum_twice(static_cast<std::size_t>(dy.size()) / channels, sums.first(channels), sums.subspan(channels),
            [values = x.data(), gradients = dy.data(), around = shift.data()](std::size_t i, std::size_t c,
                                                                              double& sum, double& product) {
              const auto gradient = static_cast<double>(gradients[i]);
              sum += gradient;
              product += gradient * (static_cast<double>(values[i]) - static_cast<double>(around[c]));
            });
}

Index histogram_bin(Scalar value) {
  const Scalar magnitude = std::abs(value);
  if (!(magnitude >= std::ldexp(Scalar{1}, kSmallestExponent))) return kBinsOfASign;
  const Index bin = bin_of_magnitude(magnitude);
  return value < 0 ? kBinsOfASign - 1 - bin : kBinsOfASign + 1 + bin;
}

double histogram_limit(Index bin) {
  if (bin >= kBinsOfASign) {
    return bin == kBinsOfASign ? std::ldexp(1.0, kSmallestExponent) : magnitude_limit(bin - kBinsOfASign - 1);
  }
  const Index below = kBinsOfASign - 2 - bin;
  return below < 0 ? -std::ldexp(1.0, kSmallestExponent) : -magnitude_limit(below);
}

}  // namespace lockstep
