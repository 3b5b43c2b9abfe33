// The range that a number in the config must lie in, and its wording in errors and the reference.
#pragma once

#include <functional>
#include <string>

namespace lockstep {

struct Limits {
  std::string words;                  ///< after "a number": "above 0"; empty: any number
  std::function<bool(double)> admit;  ///< empty: any number

  bool hold(double value) const { return !admit || admit(value); }
};

Limits above(double low);
/// low < value < end.
Limits above_to_below(double low, double end);
/// low < value <= high.
Limits above_up_to(double low, double high);
Limits at_least(double low);
/// low <= value <= high.
Limits between(double low, double high);
/// low <= value < end.
Limits from_to_below(double low, double end);

}  // namespace lockstep
