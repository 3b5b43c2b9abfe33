// The types that an option's field may have: how each is read from text, written as text, and called in
// errors. The text is the same in TOML (without the quotes and brackets) and on the command line.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/comm/options.h"
#include "lockstep/data/options.h"
#include "lockstep/distributed/options.h"
#include "lockstep/nn/options.h"
#include "lockstep/train/options.h"

namespace lockstep {

/// The type that a TOML value must have to fit an option.
enum class ValueKind { kText, kBoolean, kWholeNumber, kCountOrAuto, kNumber, kNumberList, kTextList };

/// `noun`: "a number"; `parse`: nothing if the text is no such value; `text`: parse(text(value)) == value.
template <class T>
struct ValueType;

template <>
struct ValueType<std::string> {
  static constexpr ValueKind kKind = ValueKind::kText;
  static constexpr std::string_view kNoun = "text";
  /// Any UTF-8 without a zero byte: what a TOML string can hold and a path may be.
  static std::optional<std::string> parse(std::string_view text);
  static std::string text(const std::string& value) { return value; }
};

template <>
struct ValueType<bool> {
  static constexpr ValueKind kKind = ValueKind::kBoolean;
  static constexpr std::string_view kNoun = "true or false";
  static std::optional<bool> parse(std::string_view text);
  static std::string text(bool value) { return value ? "true" : "false"; }
};

template <>
struct ValueType<Index> {
  static constexpr ValueKind kKind = ValueKind::kWholeNumber;
  static constexpr std::string_view kNoun = "a whole number";
  static std::optional<Index> parse(std::string_view text);
  static std::string text(Index value) { return std::to_string(value); }
};

template <>
struct ValueType<double> {
  static constexpr ValueKind kKind = ValueKind::kNumber;
  static constexpr std::string_view kNoun = "a number";
  /// Finite numbers only.
  static std::optional<double> parse(std::string_view text);
  /// The shortest text that is read as the same bits.
  static std::string text(double value);
};

/// "0.1,0.2": at least one number.
template <>
struct ValueType<std::vector<double>> {
  static constexpr ValueKind kKind = ValueKind::kNumberList;
  static constexpr std::string_view kNoun = "a number or a list of numbers";
  static std::optional<std::vector<double>> parse(std::string_view text);
  static std::string text(const std::vector<double>& value);
};

/// "age,hours": texts without commas; "" is the empty list.
template <>
struct ValueType<std::vector<std::string>> {
  static constexpr ValueKind kKind = ValueKind::kTextList;
  static constexpr std::string_view kNoun = "a list of texts without commas";
  static std::optional<std::vector<std::string>> parse(std::string_view text);
  static std::string text(const std::vector<std::string>& value);
};

template <>
struct ValueType<PipelineSchedule> {
  static constexpr ValueKind kKind = ValueKind::kText;
  static constexpr std::string_view kNoun = "1f1b, gpipe, or interleaved(v) with v from 2";
  static std::optional<PipelineSchedule> parse(std::string_view text) { return parse_schedule(text); }
  static std::string text(const PipelineSchedule& value) { return to_string(value); }
};

/// The names of an enum's values in the config, in the order of the values.
template <class E>
struct EnumNames {
  std::array<std::string_view, 4> names;  ///< "" behind the last of them
};
inline constexpr std::tuple kEnumNames{EnumNames<DataMode>{{"shard", "full"}},
                                       EnumNames<MemoryMode>{{"auto", "load", "stream"}},
                                       EnumNames<ShardOrder>{{"shuffled", "contiguous", "strided"}},
                                       EnumNames<RecordShape>{{"auto", "row", "image", "sequence"}},
                                       EnumNames<ShardBy>{{"auto", "record", "file"}},
                                       EnumNames<Reshuffle>{{"shard", "global", "batch"}},
                                       EnumNames<Tail>{{"keep", "drop"}},
                                       EnumNames<Header>{{"auto", "yes", "no"}},
                                       EnumNames<WindowScale>{{"none", "last", "standard"}},
                                       EnumNames<FillGaps>{{"none", "last", "zero"}},
                                       EnumNames<OnBadRecord>{{"fail", "skip"}},
                                       EnumNames<Reduction>{{"native", "ordered"}},
                                       EnumNames<StagePlacement>{{"neighbours", "spread"}},
                                       EnumNames<Precision>{{"fp32", "bf16"}},
                                       EnumNames<ServerMode>{{"sync", "bounded", "async"}},
                                       EnumNames<OnDesync>{{"stop", "rebroadcast"}},
                                       EnumNames<OnNan>{{"stop", "skip"}},
                                       EnumNames<Hang>{{"loop", "skip"}},
                                       EnumNames<ProgressStyle>{{"auto", "live", "plain", "none"}},
                                       EnumNames<PlanStyle>{{"short", "full"}}};

template <class E>
requires std::is_enum_v<E>
struct ValueType<E> {
  static constexpr ValueKind kKind = ValueKind::kText;
  static constexpr const auto& kNames = std::get<EnumNames<E>>(kEnumNames).names;
  static std::optional<E> parse(std::string_view text) {
    const auto found = std::ranges::find(kNames, text);
    if (text.empty() || found == kNames.end()) return std::nullopt;
    return static_cast<E>(found - kNames.begin());
  }
  static std::string text(E value) { return std::string(kNames.at(static_cast<std::size_t>(value))); }
  static std::vector<std::string> names() { return {kNames.begin(), std::ranges::find(kNames, "")}; }
};

}  // namespace lockstep
