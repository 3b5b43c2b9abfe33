// The scalar and index types of the whole program, and the half-open range that is its common currency.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep {

/// Counts, offsets and sizes. Signed; converted to `int` only at an MPI call.
using Index = std::int64_t;
/// Weights, gradients, activations and inputs.
using Scalar = float;

/// Memory of arenas, ranges and activations starts on a multiple of this many bytes.
inline constexpr Index kAlignmentBytes = 64;
/// kAlignmentBytes in scalars.
inline constexpr Index kAlignment = kAlignmentBytes / Index{sizeof(Scalar)};

/// container[i] for a signed index. Requires 0 <= i < size.
template <typename Container>
constexpr decltype(auto) at(Container&& container, Index i) {
  return std::forward<Container>(container)[static_cast<std::size_t>(i)];
}

/// Base of classes whose objects are neither copied nor moved.
struct NoCopy {
  NoCopy() = default;
  NoCopy(const NoCopy&) = delete;
  NoCopy& operator=(const NoCopy&) = delete;
};

/// The integers begin <= i < end.
struct Range {
  Index begin = 0;
  Index end = 0;

  Index size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(Index i) const { return begin <= i && i < end; }
  bool contains(Range other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Range&) const = default;
};

/// The common part of two ranges; empty (and starting at the later begin) where they do not meet.
inline Range intersect(Range a, Range b) {
  const Index begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Part `part` of `parts` contiguous pieces of [0, total). Piece borders fall on multiples of `alignment`;
/// the sizes of two pieces differ by at most `alignment`, and the longer pieces come first.
inline Range split_evenly(Index total, Index parts, Index part, Index alignment = 1) {
  const Index units = (total + alignment - 1) / alignment;
  const Index size = units / parts;
  const Index longer = units % parts;
  const Index begin = part * size + std::min(part, longer);
  const Index end = begin + size + (part < longer ? 1 : 0);
  return {std::min(begin * alignment, total), std::min(end * alignment, total)};
}

/// Likewise of a range, from its begin on.
inline Range split_evenly(Range whole, Index parts, Index part, Index alignment = 1) {
  const Range within = split_evenly(whole.size(), parts, part, alignment);
  return {whole.begin + within.begin, whole.begin + within.end};
}

/// The part of split_evenly(total, parts, ...) that holds `i`. Requires 0 <= i < total.
inline Index part_of(Index total, Index parts, Index i) {
  const Index shorter = total / parts;
  const Index longer_parts = total % parts;
  const Index in_longer = longer_parts * (shorter + 1);
  return i < in_longer ? i / (shorter + 1) : longer_parts + (i - in_longer) / shorter;
}

/// `value` rounded up to the next multiple of `unit`.
constexpr Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

/// ceil(whole / parts)
constexpr Index divide_up(Index whole, Index parts) {
  return (whole + parts - 1) / parts;
}

// Binary search over numbers instead of elements.

/// The first number of `range` for which `is_before` is false; range.end if there is none. From there on it
/// must stay false.
template <class IsBefore>
Index first_index(Range range, const IsBefore& is_before) {
  while (!range.empty()) {
    const Index middle = range.begin + range.size() / 2;
    if (is_before(middle)) {
      range.begin = middle + 1;
    } else {
      range.end = middle;
    }
  }
  return range.end;
}

}  // namespace lockstep
