#include "lockstep/train/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr const char* kBalanced = "balanced";

std::string name_of(Index number, const DatasetInfo& data) {
  if (number < std::ssize(data.class_names)) return in_quotes(at(data.class_names, number));
  return fmt::format("{}", number);
}

// A list of the classes, for messages.
std::string describe_classes(const DatasetInfo& data, Index classes) {
  if (data.class_names.empty()) {
    return fmt::format("its classes are the numbers 0 to {}, one for each output", classes - 1);
  }
  return fmt::format("the classes of '{}' are {}", data.name, listed(data.class_names));
}

// By name before number: a class may be called by a number that is not its own.
std::optional<Index> find_class(const std::string& name, const DatasetInfo& data, Index classes) {
  const auto named = std::ranges::find(data.class_names, name);
  if (named != data.class_names.end()) return named - data.class_names.begin();
  const std::optional<double> number = parse_number(name);
  if (!number || !(*number >= 0 && *number < static_cast<double>(classes))) return std::nullopt;
  const auto whole = static_cast<Index>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

}  // namespace

bool is_balanced(std::span<const std::string> option) {
  return option.size() == 1 && option.front() == kBalanced;
}

std::vector<NamedClassWeight> parse_class_weights(std::span<const std::string> option) {
  std::vector<NamedClassWeight> named;
  for (const std::string& entry : option) {
    const std::size_t colon = entry.rfind(':');  // a name may hold one
    std::optional<double> weight;
    if (colon != std::string::npos) weight = parse_number(trimmed(std::string_view(entry).substr(colon + 1)));
    constexpr double kLeast = std::numeric_limits<Scalar>::min();
    constexpr double kMost = std::numeric_limits<Scalar>::max();
    error_if(!weight || !(*weight == 0 || (*weight >= kLeast && *weight <= kMost)),
             "train.class_weights: expected \"balanced\", or a number of 0 or more for each class as in "
             "\"spam: 2\", found {}",
             in_quotes(entry));
    named.push_back({std::string(trimmed(std::string_view(entry).substr(0, colon))), *weight});
  }
  return named;
}

std::vector<Scalar> match_class_weights(std::span<const NamedClassWeight> named, const DatasetInfo& data,
                                        Index classes) {
  std::vector<std::optional<Scalar>> found(static_cast<std::size_t>(classes));
  for (const auto& [name, weight] : named) {
    const std::optional<Index> number = find_class(name, data, classes);
    if (!number || *number >= classes) {
      const std::string nearest = nearest_name(name, data.class_names);
      throw ConfigError("train.class_weights names the class {}, which there is not: {}{}", in_quotes(name),
                        describe_classes(data, classes),
                        nearest.empty() ? "" : fmt::format("; did you mean {}?", in_quotes(nearest)));
    }
    error_if(at(found, *number).has_value(), "train.class_weights names the class {} twice; name it once",
             name_of(*number, data));
    at(found, *number) = static_cast<Scalar>(weight);
  }
  std::vector<Scalar> weights;
  for (Index number = 0; number < classes; ++number) {
    if (!at(found, number)) {
      throw ConfigError(
          "train.class_weights has no weight for the class {}: name every class, with 1 for one that counts "
          "once ({})",
          name_of(number, data), describe_classes(data, classes));
    }
    weights.push_back(*at(found, number));
  }
  if (std::ranges::all_of(weights, [](Scalar weight) { return weight == 0; })) {
    throw ConfigError(
        "train.class_weights: all weights are 0, so nothing counts: give a class a number above 0");
  }
  return weights;
}

std::vector<Scalar> balance_classes(std::span<const Index> counts) {
  const Index records = std::accumulate(counts.begin(), counts.end(), Index{0});
  const auto classes = static_cast<double>(std::ssize(counts) - std::ranges::count(counts, Index{0}));
  std::vector<Scalar> weights;
  for (const Index count : counts) {
    const double shares = classes * static_cast<double>(count);
    weights.push_back(count > 0 ? static_cast<Scalar>(static_cast<double>(records) / shares) : Scalar{1});
  }
  return weights;
}

std::string describe_unbalanced(std::span<const Index> counts, const DatasetInfo& data) {
  const auto none = std::ranges::find(counts, Index{0});
  if (none == counts.end()) return "";
  return fmt::format("train.class_weights = \"balanced\": no training record of '{}' is of class {}, so it ",
                     data.name, name_of(none - counts.begin(), data));
}

std::string describe_class_weights(std::span<const Scalar> weights, std::span<const Index> counts,
                                   const DatasetInfo& data, std::string_view counted) {
  constexpr Index kMaxShown = 20;
  std::string line;
  for (Index number = 0; number < std::min(kMaxShown, std::ssize(weights)); ++number) {
    line += fmt::format("{}{} {:.4g}", number > 0 ? ", " : "", name_of(number, data), at(weights, number));
    if (!counts.empty()) line += fmt::format(" ({} {})", with_commas(at(counts, number)), counted);
  }
  return std::ssize(weights) > kMaxShown ? line + ", ..." : line;
}

}  // namespace lockstep
