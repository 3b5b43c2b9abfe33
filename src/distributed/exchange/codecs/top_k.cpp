// Only the numbers of largest magnitude are sent, each with its index; for the others the receiver takes zero
// (Aji and Heafield 2017, "Sparse communication for distributed gradient descent"). Of equal ones the first
// go, so that the choice is the same everywhere.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

struct Pair {
  std::int32_t index;
  Scalar value;
};

// Without a sign, floats are in the order of their bits, infinity and NaN last: so those are always sent.
std::uint32_t magnitude(Scalar value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

class TopK final : public Codec {
 public:
  explicit TopK(double share) : share_(share) {}

  Index bytes(Index count) const override { return kept(count) * Index{sizeof(Pair)}; }

  void encode(std::span<const Scalar> values, std::span<std::byte> message) override {
    Index kept_left = kept(std::ssize(values));
    if (kept_left == 0) return;
    const std::uint32_t least = kth_largest(values, kept_left);
    Index equal_left =
        kept_left - std::ranges::count_if(values, [least](Scalar value) { return magnitude(value) > least; });
    std::byte* out = message.data();
    for (std::size_t i = 0; kept_left > 0; ++i) {
      const std::uint32_t here = magnitude(values[i]);
      if (here < least || (here == least && equal_left-- <= 0)) continue;
      const Pair pair{.index = static_cast<std::int32_t>(i), .value = values[i]};
      std::memcpy(out, &pair, sizeof pair);
      out += sizeof pair;
      --kept_left;
    }
  }

  void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const override {
    for (std::size_t i = 0; i < message.size(); i += sizeof(Pair)) {
      Pair pair;
      std::memcpy(&pair, message.data() + i, sizeof pair);
      at(values, pair.index) += factor * pair.value;
    }
  }

 private:
  // Some, but of nothing; a product such as 0.07 * 100 is a little more than 7.
  Index kept(Index count) const {
    if (count == 0) return 0;
    error_if(
        count > std::numeric_limits<std::int32_t>::max(),
        "compression top_k counts indices in 32 bits, and a slice of the gradient has more numbers; start "
        "more ranks or lower distribute.bucket_kib");
    return std::clamp<Index>(static_cast<Index>(std::ceil(share_ * static_cast<double>(count) - 1e-9)), 1,
                             count);
  }

  std::uint32_t kth_largest(std::span<const Scalar> values, Index k) {
    magnitudes_.resize(values.size());
    std::ranges::transform(values, magnitudes_.begin(), magnitude);
    const auto nth = magnitudes_.begin() + (k - 1);
    std::ranges::nth_element(magnitudes_, nth, std::greater());
    return *nth;
  }

  double share_;
  std::vector<std::uint32_t> magnitudes_;  // magnitudes in the message that is written
};

}  // namespace

CodecEntry top_k_entry() {
  return {
      .name = "top_k",
      .help =
          "only the share `top_k` of the numbers, those of largest magnitude, each with its index (8 bytes); "
          "the rest is zero. Learns with error_feedback only",
      .options = {"distribute.error_feedback", "distribute.top_k"},
      .make = [](const DistOptions& options) { return std::make_unique<TopK>(options.top_k); }};
}

}  // namespace lockstep
