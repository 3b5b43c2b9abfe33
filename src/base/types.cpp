#include "lockstep/base/types.h"

#include <algorithm>

namespace lockstep {

Range intersect(Range a, Range b) {
  const Index begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Range split_evenly(Index total, Index parts, Index part, Index alignment) {
  const Index units = (total + alignment - 1) / alignment;
  const Index size = units / parts;
  const Index longer = units % parts;
  const Index begin = part * size + std::min(part, longer);
  const Index end = begin + size + (part < longer ? 1 : 0);
  return {std::min(begin * alignment, total), std::min(end * alignment, total)};
}

Index part_of(Index total, Index parts, Index i) {
  const Index shorter = total / parts;
  const Index longer_parts = total % parts;
  const Index in_longer = longer_parts * (shorter + 1);
  return i < in_longer ? i / (shorter + 1) : longer_parts + (i - in_longer) / shorter;
}

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace lockstep
