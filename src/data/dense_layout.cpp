#include "dense_layout.h"

#include <cstdint>
#include <cstring>

namespace lockstep {
namespace {

// A division, as products with the two halves of 1 / 255, that with the upper one exact. That is faster, and
// the same number.
constexpr Scalar as_share_of_255(std::uint8_t value) {
  const auto exact = static_cast<Scalar>(value);
  return exact * 0x1.01p-8F + exact * 0x1.010102p-24F;
}

consteval bool equals_division() {
  for (int value = 0; value < 256; ++value) {
    if (as_share_of_255(static_cast<std::uint8_t>(value)) != static_cast<Scalar>(value) / Scalar{255}) {
      return false;
    }
  }
  return true;
}
static_assert(equals_division());

void scale_bytes(const std::byte* from, Index count, Scalar* to) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  for (Index i = 0; i < count; ++i) to[i] = as_share_of_255(bytes[i]);
}

// Packed scalars lie at any address.
void copy_scalars(const std::byte* from, Index count, Scalar* to) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Scalar));
}

// Asks for the memory of a record that will be unpacked soon: records come in random order.
void prefetch(const std::byte* from, Index bytes) {
  constexpr Index kLine = 64;
  for (Index i = 0; i < bytes; i += kLine) __builtin_prefetch(from + i);
}

}  // namespace

void DenseLayout::unpack(std::span<const std::byte* const> records, Matrix& x, Matrix& y) const {
  constexpr std::size_t kAhead = 4;
  for (std::size_t row = 0; row < records.size(); ++row) {
    if (row + kAhead < records.size()) prefetch(records[row + kAhead], record_bytes());
    Scalar* to = x.data() + static_cast<Index>(row) * features;
    if (byte_features) {
      scale_bytes(records[row], features, to);
    } else {
      copy_scalars(records[row], features, to);
    }
    copy_scalars(records[row] + feature_bytes(), labels, y.data() + static_cast<Index>(row) * labels);
  }
}

}  // namespace lockstep
