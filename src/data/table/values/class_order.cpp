#include "lockstep/data/table/values/column_stats.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

// Names that mean yes, in small letters; so does the number 1.
constexpr std::array kYes{"true", "t",   "yes",      "y",       "ja",  "j",    "oui", "si",
                          "sí",   "sim", "positive", "positiv", "pos", "case", "+"};

bool means_yes(const std::string& name) {
  if (const std::optional<double> number = parse_number(name)) return *number == 1;
  return std::ranges::find(kYes, in_lower_case(name)) != kYes.end();
}

// Whether the first of two classes is the positive one. Beside a greater number, 1 is a number like others.
bool is_first_positive(const ValueCounts::Entry& before, const ValueCounts::Entry& after) {
  const bool numbers = parse_number(before.text) && parse_number(after.text);
  const bool named = !numbers && means_yes(before.text);
  if (named != means_yes(after.text)) return named;
  return 10 * before.count < 4 * (before.count + after.count);
}

}  // namespace

std::vector<std::string> ordered_classes(std::span<const ValueCounts::Entry> classes,
                                         const std::string& positive, std::string_view label) {
  std::vector<ValueCounts::Entry> sorted(classes.begin(), classes.end());
  const bool numbers =
      std::ranges::all_of(sorted, [](const auto& each) { return parse_number(each.text).has_value(); });
  std::ranges::sort(sorted, [numbers](const auto& a, const auto& b) {
    const double x = numbers ? *parse_number(a.text) : 0;
    const double y = numbers ? *parse_number(b.text) : 0;
    return x != y ? x < y : a.text < b.text;
  });
  std::vector<std::string> names;
  for (const ValueCounts::Entry& each : sorted) names.push_back(each.text);
  const bool known = std::ranges::find(names, positive) != names.end();
  error_if(!positive.empty() && (names.size() != 2 || !known),
           "data.positive = {}: {} has the {} classes {}, expected two, of which this is one",
           in_quotes(positive), label, with_commas(std::ssize(names)), listed(names));
  if (names.size() == 2 &&
      (positive.empty() ? is_first_positive(sorted[0], sorted[1]) : names[0] == positive))
    std::swap(names[0], names[1]);
  return names;
}

}  // namespace lockstep
