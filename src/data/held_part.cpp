// How the validation part is chosen. Its size is the share of the records, rounded.
//
// stratified: each class gives its share, rounded down; the classes whose share was cut the most give one
// record more until the size is reached (the method of largest remainders). So a class has at most one record
// too many or too few. Which of its records they are, a keyed permutation says. No class is held back as a
// whole.
//
// time: the last records. Records of one time stay together: of the two ends of the time at the border, the
// one that is nearer to the size is taken.
//
// group: groups in the order of a keyed hash of their value are taken as long as that brings the size nearer.
// So a group keeps its place when records or other groups are added.
#include "lockstep/data/folds/held_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "fold_values.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxShown = 20;  // classes in a note

struct Word {
  HeldPart::By by;
  const char* name;
  const char* usage;
};
constexpr std::array kWords{Word{HeldPart::By::kClass, "stratified", "stratified(0.1)"},
                            Word{HeldPart::By::kTime, "time", "time(date, 0.1)"},
                            Word{HeldPart::By::kGroup, "group", "group(customer, 0.1)"}};

std::string setting_of(const HeldPart& part) {
  return fmt::format("data.validation = {}", in_quotes(part.text));
}

std::string without_quotes(std::string_view text) {
  const bool quoted =
      text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

using Part = std::vector<std::int16_t>;  // of each record: 1 if it is held back, else 0

// A choice of records, and a sentence about it.
struct FoldChoice {
  Part fold_of;
  std::string note;
};

Index size_of(double share, Index records) {
  return static_cast<Index>(std::floor(share * static_cast<double>(records) + 0.5));
}

// How many records of each class are held back.
std::vector<Index> apportion(double share, const std::vector<Index>& sizes) {
  const Index all = std::accumulate(sizes.begin(), sizes.end(), Index{0});
  std::vector<Index> held;
  std::vector<std::size_t> order;
  std::vector<double> cut;
  for (const Index size : sizes) {
    const double exact = share * static_cast<double>(size);
    held.push_back(static_cast<Index>(std::floor(exact)));
    cut.push_back(exact - std::floor(exact));
    order.push_back(order.size());
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return cut[a] > cut[b]; });
  Index left = size_of(share, all) - std::accumulate(held.begin(), held.end(), Index{0});
  for (const std::size_t i : order) {
    if (left <= 0) break;
    if (held[i] + 1 >= sizes[i]) continue;  // some are trained on
    ++held[i];
    --left;
  }
  return held;
}

// "'yes' 5 of 50, 'no' 15 of 150"
std::string list_classes(const std::vector<Scalar>& labels, const std::vector<Index>& held,
                         const std::vector<Index>& sizes, const DatasetInfo& info) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kMaxShown, labels.size()); ++i) {
    const bool named = labels[i] >= 0 && labels[i] < static_cast<Scalar>(info.class_names.size());
    const std::string name = named ? in_quotes(info.class_names[static_cast<std::size_t>(labels[i])])
                                   : fmt::format("{:g}", labels[i]);
    shown.push_back(fmt::format("{} {} of {}", name, with_commas(held[i]), with_commas(sizes[i])));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), labels.size() > kMaxShown ? ", ..." : "");
}

FoldChoice choose_by_class(const HeldPart& part, const std::vector<Scalar>& targets, std::uint64_t seed,
                           const DatasetInfo& info) {
  const std::string instead = fmt::format("data.validation_share = {} holds back", part.share);
  const RecordsByClass classes = records_by_class(targets, seed, setting_of(part), instead);
  std::vector<Scalar> labels;
  std::vector<Index> sizes;
  for (const auto& [label, ids] : classes) {
    labels.push_back(label);
    sizes.push_back(std::ssize(ids));
  }
  const std::vector<Index> held = apportion(part.share, sizes);
  FoldChoice choice{.fold_of = Part(targets.size()), .note = {}};
  auto count = held.begin();
  for (const auto& [label, ids] : classes) {
    for (Index i = 0; i < *count; ++i) at(choice.fold_of, at(ids, i)) = 1;
    ++count;
  }
  choice.note = fmt::format("of each of the {} classes its share: {}", labels.size(),
                            list_classes(labels, held, sizes, info));
  return choice;
}

FoldChoice choose_by_group(const HeldPart& part, const std::vector<std::string>& values, std::uint64_t seed) {
  std::map<std::string, Index> sizes;
  for (const std::string& value : values) ++sizes[value];
  if (sizes.size() < 2) {
    throw ConfigError(
        fmt::format("{}: column {} has one value only, {}: expected groups of which some can be held back, "
                    "and others not",
                    setting_of(part), in_quotes(part.column), in_quotes(values.front())));
  }
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [value, size] : sizes)
    order.emplace_back(hash_text(fmt::format("{} {}", seed, value)), value);
  std::ranges::sort(order);
  const Index goal = size_of(part.share, std::ssize(values));
  std::map<std::string, Index> held;
  Index records = 0;
  for (const auto& [hash, value] : order) {
    const Index size = sizes[value];
    if (size > 2 * (goal - records) || held.size() + 1 == sizes.size()) continue;
    held[value] = size;
    records += size;
  }
  if (held.empty())
    held.insert(*std::ranges::min_element(sizes, {}, &std::pair<const std::string, Index>::second));
  FoldChoice choice{.fold_of = {}, .note = {}};
  for (const std::string& value : values) choice.fold_of.push_back(held.contains(value) ? 1 : 0);
  choice.note = fmt::format("all of {} of the {} groups of column {}", with_commas(std::ssize(held)),
                            with_commas(std::ssize(sizes)), in_quotes(part.column));
  return choice;
}

FoldChoice choose_by_time(const HeldPart& part, const std::vector<std::string>& values,
                          const ValueOrder& earlier) {
  std::vector<Index> ids(values.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](Index a, Index b) { return earlier(at(values, a), at(values, b)); });
  const Index rows = std::ssize(values);
  const auto value_at = [&](Index position) -> const std::string& { return at(values, at(ids, position)); };
  const auto begins_a_time = [&](Index position) {
    return position == rows || earlier(value_at(position - 1), value_at(position));
  };
  const Index goal = std::clamp(rows - size_of(part.share, rows), Index{1}, std::max(Index{1}, rows - 1));
  Index before = goal;
  while (before > 0 && !begins_a_time(before)) --before;
  Index after = goal;
  while (!begins_a_time(after)) ++after;
  const bool later = after < rows && (before == 0 || after - goal < goal - before);
  const Index begin = later ? after : before;
  if (begin == 0 || begin == rows) {
    throw ConfigError(fmt::format(
        "{}: column {} has one value only, {}: expected times, the last of which can be held back",
        setting_of(part), in_quotes(part.column), in_quotes(values.front())));
  }
  FoldChoice choice{.fold_of = Part(values.size()), .note = {}};
  for (Index i = begin; i < rows; ++i) at(choice.fold_of, at(ids, i)) = 1;
  choice.note =
      fmt::format("the last in column {}, from {} to {}; the others are up to {}", in_quotes(part.column),
                  in_quotes(value_at(begin)), in_quotes(value_at(rows - 1)), in_quotes(value_at(begin - 1)));
  return choice;
}

}  // namespace

std::optional<HeldPart> parse_held_part(std::string_view text) {
  text = trimmed(text);
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const auto word = std::ranges::find(kWords, text.substr(0, open), &Word::name);
  if (word == kWords.end()) return std::nullopt;
  HeldPart part{.by = word->by, .text = std::string(text)};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const std::size_t comma = inside.rfind(',');
  const bool has_column = comma != std::string_view::npos;
  if (has_column) part.column = without_quotes(trimmed(inside.substr(0, comma)));
  const std::optional<double> share = parse_number(trimmed(has_column ? inside.substr(comma + 1) : inside));
  const bool wants_column = part.by != HeldPart::By::kClass;
  if (!share || wants_column != has_column || (has_column && part.column.empty())) {
    throw ConfigError(fmt::format(
        "{}: expected {}", setting_of(part),
        wants_column ? fmt::format("a column and the share of the samples, as in \"{}\"", word->usage)
                     : fmt::format("the share of the samples, as in \"{}\"", word->usage)));
  }
  if (!(*share > 0 && *share < 1)) {
    throw ConfigError(
        fmt::format("{}: expected a share above 0 and below 1, found {}", setting_of(part), *share));
  }
  part.share = *share;
  return part;
}

HeldAssignment assign_held_part(const HeldPart& part, const DataOptions& data, std::uint64_t seed,
                                const RecordSource& whole, PeerGroup& peers) {
  const DatasetInfo& info = whole.info();
  const std::string setting = setting_of(part);
  peers.agree([&] {
    if (info.record_bytes > 0) return;
    throw ConfigError(
        fmt::format("{} needs records of files; synthetic ones have a validation set of their "
                    "own, data.synthetic_validation_rows",
                    setting));
  });
  const bool by_class = part.by == HeldPart::By::kClass;
  const FoldColumn column{.name = part.column, .setting = setting};
  FoldValues values;
  std::vector<Scalar> targets;
  if (by_class) {
    targets = read_targets(whole, setting, peers);
  } else {
    values = read_column(column, data, whole, peers);
  }
  HeldAssignment assignment;
  peers.agree([&] {
    FoldChoice choice = by_class ? choose_by_class(part, targets, seed, info)
                        : part.by == HeldPart::By::kGroup
                            ? choose_by_group(part, values.texts, seed)
                            : choose_by_time(part, values.texts, {values, column});
    assignment.note = fmt::format("validation set, {}: {} of the {} records of '{}', {}", part.text,
                                  with_commas(std::ranges::count(choice.fold_of, 1)), with_commas(info.rows),
                                  info.name, choice.note);
    assignment.folds = std::make_shared<FoldAssignment>(FoldAssignment{.fold_of = std::move(choice.fold_of)});
  });
  return assignment;
}

}  // namespace lockstep
