// The types that an option's field may have: how each is read from text, written as text, and called in
// errors. The text is the same in TOML (without the quotes and brackets) and on the command line.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
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
inline constexpr std::array<std::string_view, 0> kEnumNames{};
template <>
inline constexpr auto kEnumNames<DataMode> = std::to_array<std::string_view>({"shard", "full"});
template <>
inline constexpr auto kEnumNames<MemoryMode> = std::to_array<std::string_view>({"auto", "load", "stream"});
template <>
inline constexpr auto kEnumNames<ShardOrder> = std::to_array<std::string_view>({"shuffled", "contiguous",
                                                                                "strided"});
template <>
inline constexpr auto kEnumNames<RecordShape> = std::to_array<std::string_view>({"auto", "row", "image",
                                                                                 "sequence"});
template <>
inline constexpr auto kEnumNames<ShardBy> = std::to_array<std::string_view>({"auto", "record", "file"});
template <>
inline constexpr auto kEnumNames<Reshuffle> = std::to_array<std::string_view>({"shard", "global", "batch"});
template <>
inline constexpr auto kEnumNames<Tail> = std::to_array<std::string_view>({"keep", "drop"});
template <>
inline constexpr auto kEnumNames<Header> = std::to_array<std::string_view>({"auto", "yes", "no"});
template <>
inline constexpr auto kEnumNames<WindowScale> = std::to_array<std::string_view>({"none", "last", "standard"});
template <>
inline constexpr auto kEnumNames<FillGaps> = std::to_array<std::string_view>({"none", "last", "zero"});
template <>
inline constexpr auto kEnumNames<OnBadRecord> = std::to_array<std::string_view>({"fail", "skip"});
template <>
inline constexpr auto kEnumNames<Reduction> = std::to_array<std::string_view>({"native", "ordered"});
template <>
inline constexpr auto kEnumNames<StagePlacement> = std::to_array<std::string_view>({"neighbours", "spread"});
template <>
inline constexpr auto kEnumNames<Precision> = std::to_array<std::string_view>({"fp32", "bf16"});
template <>
inline constexpr auto kEnumNames<ServerMode> = std::to_array<std::string_view>({"sync", "bounded", "async"});
template <>
inline constexpr auto kEnumNames<OnDesync> = std::to_array<std::string_view>({"stop", "rebroadcast"});
template <>
inline constexpr auto kEnumNames<OnNan> = std::to_array<std::string_view>({"stop", "skip"});
template <>
inline constexpr auto kEnumNames<Hang> = std::to_array<std::string_view>({"loop", "skip"});
template <>
inline constexpr auto kEnumNames<ProgressStyle> = std::to_array<std::string_view>({"auto", "live", "plain",
                                                                                   "none"});
template <>
inline constexpr auto kEnumNames<PlanStyle> = std::to_array<std::string_view>({"short", "full"});

template <class E>
requires std::is_enum_v<E>
struct ValueType<E> {
  static constexpr ValueKind kKind = ValueKind::kText;
  static std::optional<E> parse(std::string_view text) {
    for (std::size_t i = 0; i < kEnumNames<E>.size(); ++i) {
      if (kEnumNames<E>[i] == text) return static_cast<E>(i);
    }
    return std::nullopt;
  }
  static std::string text(E value) { return std::string(kEnumNames<E>.at(static_cast<std::size_t>(value))); }
  static std::vector<std::string> names() { return {kEnumNames<E>.begin(), kEnumNames<E>.end()}; }
};

}  // namespace lockstep
