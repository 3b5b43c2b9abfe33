#include "limits.h"

#include <fmt/format.h>

namespace lockstep {

Limits above(double low) {
  return {fmt::format("above {}", low), [low](double value) { return value > low; }};
}

Limits above_to_below(double low, double end) {
  return {fmt::format("above {} and below {}", low, end),
          [low, end](double value) { return low < value && value < end; }};
}

Limits above_up_to(double low, double high) {
  return {fmt::format("above {} and at most {}", low, high),
          [low, high](double value) { return low < value && value <= high; }};
}

Limits at_least(double low) {
  return {fmt::format("of at least {}", low), [low](double value) { return value >= low; }};
}

Limits between(double low, double high) {
  return {fmt::format("from {} to {}", low, high),
          [low, high](double value) { return low <= value && value <= high; }};
}

Limits from_to_below(double low, double end) {
  return {fmt::format("of at least {} and below {}", low, end),
          [low, end](double value) { return low <= value && value < end; }};
}

}  // namespace lockstep
