// How options are declared: a list that grows, with the types of the fields as the types of the values. What
// they mean stands in configs/texts/options.txt.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/embedded_text.h"
#include "lockstep/config/option.h"

namespace lockstep {

/// The range that a number in the config must lie in, and its wording in errors and the reference.
struct Limits {
  std::string words = {};  ///< after "a number": "above 0"; empty: any number
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_above = false;  ///< `low` itself is not in it
  bool is_below = false;  ///< nor is `high`

  bool hold(double value) const {
    return (is_above ? low < value : low <= value) && (is_below ? value < high : value <= high);
  }
};

inline Limits above(double low) {
  return {.words = fmt::format("above {}", low), .low = low, .is_above = true};
}
inline Limits above_to_below(double low, double end) {
  return {fmt::format("above {} and below {}", low, end), low, end, true, true};
}
inline Limits above_up_to(double low, double high) {
  return {fmt::format("above {} and at most {}", low, high), low, high, true};
}
inline Limits at_least(double low) {
  return {.words = fmt::format("of at least {}", low), .low = low};
}
inline Limits between(double low, double high) {
  return {fmt::format("from {} to {}", low, high), low, high};
}
inline Limits from_to_below(double low, double end) {
  return {fmt::format("of at least {} and below {}", low, end), low, end, false, true};
}

// Bounds far beyond use, so that no product of two of them overflows.
inline constexpr double kMaxSamples = 1e12;
inline constexpr double kMaxBatch = 1e9;
inline constexpr double kMaxReplicas = 1e6;
inline constexpr double kMaxWidth = 1e9;

/// The entry of a key or a section in configs/texts/options.txt.
const TextEntry& option_text(std::string_view name);

/// Fills in the key and what the texts say of it.
void describe(Option& option, std::string key);

/// A number that the program chooses.
inline constexpr std::string_view kAuto = "auto";

/// Whether a value that is a number, or has some, is within the limits.
template <class T>
bool hold(const Limits& limits, const T& value) {
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    return std::ranges::all_of(value, [&limits](double each) { return limits.hold(each); });
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Index>) {
    return limits.hold(static_cast<double>(value));
  } else {
    return true;
  }
}

/// The declarations, which read as a table: key, field, limits, and when the option is read.
class OptionList {
 public:
  /// Adds one, with what the texts say of it. `get`: from a Config to its field, as a reference.
  template <class T, class Get>
  Option& add(std::string key, const Get& get) {
    using Type = ValueType<T>;
    Option& added = options_.emplace_back();
    describe(added, std::move(key));
    added.kind = Type::kKind;
    added.assign = [get](Config& config, std::string_view value) {
      get(config) = Type::parse(value).value();
    };
    added.text = [get](const Config& config) { return Type::text(get(config)); };
    added.default_text = added.text(Config());
    return added;
  }

  std::vector<Option> take() { return std::move(options_); }

 private:
  std::vector<Option> options_;
};

/// Declares fields of one struct of the config. `Get`: from a Config to that struct, as a reference.
template <class Get>
class Fields {
 public:
  Fields(OptionList& list, Get get) : list_(list), get_(get) {}

  /// Declares fields of a struct inside.
  template <class Owner, class Inner>
  auto inner(Inner Owner::*member) const {
    return lockstep::Fields(list_, to(member));
  }

  /// A text, a number or numbers, true or false, or an enum.
  template <class Owner, class T>
  Option& option(std::string key, T Owner::*field, Limits limits = {}) const {
    using Type = ValueType<T>;
    Option& added = list_.add<T>(std::move(key), to(field));
    if constexpr (std::is_enum_v<T>) {
      added.choices = Type::names();
      added.expected = fmt::format("one of '{}'", fmt::join(added.choices, "', '"));
    } else if (added.expected.empty()) {
      added.expected = fmt::format("{}{}{}", Type::kNoun, limits.words.empty() ? "" : " ", limits.words);
    }
    added.accepts = [limits = std::move(limits)](std::string_view text) {
      const std::optional<T> value = Type::parse(text);
      return value && hold(limits, *value);
    };
    return added;
  }

  /// A whole number within the limits, or "auto", for which the field is 0.
  template <class Owner>
  Option& count_or_auto(std::string key, Index Owner::*field, Limits limits) const {
    Option& added = list_.add<Index>(std::move(key), to(field));
    added.kind = ValueKind::kCountOrAuto;
    added.expected = fmt::format("auto, or a whole number {}", limits.words);
    added.accepts = [limits = std::move(limits)](std::string_view text) {
      const std::optional<Index> value = ValueType<Index>::parse(text);
      return text == kAuto || (value && hold(limits, *value));
    };
    added.assign = [whole = added.assign](Config& config, std::string_view text) {
      whole(config, text == kAuto ? "0" : text);
    };
    added.text = [whole = added.text](const Config& config) {
      const std::string text = whole(config);
      return text == "0" ? std::string(kAuto) : text;
    };
    added.default_text = added.text(Config());
    return added;
  }

  /// A text that must be one of `names`, or texts that each must be.
  template <class Owner, class T>
  Option& choice(std::string key, T Owner::*field, std::vector<std::string> names) const {
    constexpr bool kSeveral = !std::is_same_v<T, std::string>;
    Option& added = list_.add<T>(std::move(key), to(field));
    added.expected = fmt::format("one {}of '{}'", kSeveral ? "or several " : "", fmt::join(names, "', '"));
    added.choices = std::move(names);
    added.accepts = [known = added.choices](std::string_view text) {
      std::optional<std::vector<std::string>> values{{std::string(text)}};
      if constexpr (kSeveral) values = ValueType<T>::parse(text);
      return values && !values->empty() && std::ranges::all_of(*values, [&known](const std::string& value) {
               return std::ranges::find(known, value) != known.end();
             });
    };
    return added;
  }

 private:
  template <class Owner, class T>
  auto to(T Owner::*field) const {
    return [ get = get_, field ](auto& config) -> auto& {
      return get(config).*field;
    };
  }

  OptionList& list_;
  Get get_;
};

}  // namespace lockstep
