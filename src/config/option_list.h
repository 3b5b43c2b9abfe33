// How options are declared: a list that grows, with the types of the fields as the types of the values. What
// they mean stands in configs/texts/options.txt.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/embedded_text.h"
#include "lockstep/config/option.h"

namespace lockstep {

/// The range that a number in the config must lie in, and its wording in errors and the reference.
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

// Bounds far beyond use, so that no product of two of them overflows.
inline constexpr double kMaxSamples = 1e12;
inline constexpr double kMaxBatch = 1e9;
inline constexpr double kMaxReplicas = 1e6;
inline constexpr double kMaxWidth = 1e9;

/// The entry of a key or a section in configs/texts/options.txt.
const TextEntry& option_text(std::string_view name);

/// A number that the program chooses.
inline constexpr std::string_view kAuto = "auto";

inline bool hold(const Limits& limits, double value) {
  return limits.hold(value);
}
inline bool hold(const Limits& limits, Index value) {
  return limits.hold(static_cast<double>(value));
}
inline bool hold(const Limits& limits, const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&limits](double value) { return limits.hold(value); });
}
template <class T>
bool hold(const Limits&, const T&) {
  return true;
}

/// A declared option, to which more can be said in a chain.
class Declaration {
 public:
  explicit Declaration(Option& option) : option_(option) {}

  Declaration& alias(std::string flag) { return set(option_.alias, std::move(flag)); }
  Declaration& counterpart(std::string key) { return set(option_.counterpart, std::move(key)); }
  Declaration& on_resume(OnResume rule) { return set(option_.on_resume, rule); }
  Declaration& about_exchange() { return set(option_.about_exchange, true); }
  Declaration& most_used() { return set(option_.most_used, true); }
  Declaration& earlier() { return set(option_.earlier, true); }
  Declaration& takes_numbers() { return set(option_.takes_numbers, true); }
  Declaration& read_if(ConfigFact fact) { return set(option_.is_read, std::move(fact)); }

 private:
  template <class T, class Value>
  Declaration& set(T& field, Value value) {
    field = std::move(value);
    return *this;
  }

  Option& option_;
};

/// The declarations read as a table: key, field, limits, and what is special.
class OptionList {
 public:
  /// The rule for the options of the section, unless one says otherwise.
  void begin_section(OnResume rule) { on_resume_ = rule; }

  /// A text, a number or numbers, true or false, or an enum.
  template <class T>
  Declaration option(std::string key, T& field, Limits limits = {}) {
    using Type = ValueType<T>;
    Option& added = add(std::move(key), Type::kKind);
    if constexpr (std::is_enum_v<T>) {
      offer(added, Type::names());
    } else if (added.expected.empty()) {
      added.expected = fmt::format("{}{}{}", Type::kNoun, limits.words.empty() ? "" : " ", limits.words);
    }
    added.accepts = [limits = std::move(limits)](std::string_view text) {
      const std::optional<T> value = Type::parse(text);
      return value && hold(limits, *value);
    };
    added.assign = [&field](std::string_view text) { field = Type::parse(text).value(); };
    added.text = [&field] { return Type::text(field); };
    added.is_default = [&field, fallback = field] { return field == fallback; };
    return Declaration(added);
  }

  /// A whole number within the limits, or "auto", for which the field is 0.
  Declaration count_or_auto(std::string key, Index& field, Limits limits) {
    Option& added = add(std::move(key), ValueKind::kCountOrAuto);
    added.expected = fmt::format("auto, or a whole number {}", limits.words);
    const auto read = [](std::string_view text) {
      return text == kAuto ? std::optional<Index>(0) : ValueType<Index>::parse(text);
    };
    added.accepts = [read, limits = std::move(limits)](std::string_view text) {
      const std::optional<Index> value = read(text);
      return value && (text == kAuto || hold(limits, *value));
    };
    added.assign = [read, &field](std::string_view text) { field = read(text).value(); };
    added.text = [&field] { return field == 0 ? std::string(kAuto) : ValueType<Index>::text(field); };
    added.is_default = [&field, fallback = field] { return field == fallback; };
    return Declaration(added);
  }

  /// A text that must be one of `names`.
  Declaration choice(std::string key, std::string& field, std::vector<std::string> names) {
    const Declaration declared = option(std::move(key), field);
    Option& added = options_.back();
    offer(added, std::move(names));
    added.accepts = [known = added.choices](std::string_view text) {
      return std::find(known.begin(), known.end(), text) != known.end();
    };
    return declared;
  }

  /// One text or several, each of which must be one of `names`.
  Declaration choices(std::string key, std::vector<std::string>& field, std::vector<std::string> names) {
    const Declaration declared = option(std::move(key), field);
    Option& added = options_.back();
    added.expected = fmt::format("one or several of '{}'", fmt::join(names, "', '"));
    added.choices = std::move(names);
    added.accepts = [known = added.choices](std::string_view text) {
      const auto values = ValueType<std::vector<std::string>>::parse(text);
      return values && !values->empty() && std::ranges::all_of(*values, [&known](const std::string& value) {
               return std::ranges::find(known, value) != known.end();
             });
    };
    return declared;
  }

  std::vector<Option> take() { return std::move(options_); }

 private:
  // With what the texts say of it.
  Option& add(std::string key, ValueKind kind) {
    const TextEntry& text = option_text(key);
    Option& added = options_.emplace_back();
    added.key = std::move(key);
    added.help = text.get("help");
    added.kind = kind;
    added.expected = text.get("expected");
    added.if_not_given = text.get("not given");
    added.example = text.get("example");
    added.on_resume = on_resume_;
    added.read_if = text.get("read with");
    return added;
  }

  static void offer(Option& option, std::vector<std::string> names) {
    option.expected = fmt::format("one of '{}'", fmt::join(names, "', '"));
    option.choices = std::move(names);
  }

  std::vector<Option> options_;
  OnResume on_resume_ = OnResume::kMustStay;
};

}  // namespace lockstep
