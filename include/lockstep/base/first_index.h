// Binary search over numbers instead of elements.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

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
