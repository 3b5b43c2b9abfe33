// How records become parts. Each part below gives every record the number of a fold; of a share fold 1 is
// held back, and the others have the number 0. Its size is the share of the records, rounded.
//
// share: a hash of its number and the seed decides for each record, so that nothing has to be read first.
//
// stratified: each class gives its share, rounded down; the classes whose share was cut the most give one
// record more until the size is reached (the method of largest remainders). So a class has at most one record
// too many or too few. Which of its records they are, a keyed permutation says. No class is held back as a
// whole.
//
// time: the last records. Records of one time stay together: of the two ends of the time at the border, the
// one that is nearer to the size is taken. A span of time is held back instead if its ends are given; what
// comes after it is in no set, since a model is trained on what came before.
//
// group: groups in the order of a keyed hash of their value are taken as long as that brings the size nearer.
// So a group keeps its place when records or other groups are added.
//
// fold: a keyed permutation of the records is cut into parts that differ by one record at most.
// fold by class: the records of each class, in the order of that permutation, are dealt to the folds in turn,
//   class after class without a break, so that neither a class nor a fold has more than one record too many.
// fold by group: the groups, the largest first, go to the fold with the fewest records (as in scikit-learn's
//   GroupKFold); groups of one size follow a hash of their value.
// fold by time: the records in order of time are cut into folds + 1 parts, the last ones of one size (as in
//   scikit-learn's TimeSeriesSplit); the first is in no fold. Records of one time stay together.
// fold by column: the values of the column, in order, are the folds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "fold_values.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/parts/validation_split.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxShownClasses = 20;  // in a note

using By = ValidationPart::By;
using Folds = std::vector<FoldNumber>;  // of each record

// The records of a share, which have the number 1, and a sentence about them with its figures. Those that
// come after a span of time have kUnusedFold.
struct ShareChoice {
  Folds fold_of;
  Note note;
};

Index size_of_share(double share, Index records) {
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
  Index left = size_of_share(share, all) - std::accumulate(held.begin(), held.end(), Index{0});
  for (const std::size_t i : order) {
    if (left <= 0) break;
    if (held[i] + 1 >= sizes[i]) continue;  // some are trained on
    ++held[i];
    --left;
  }
  return held;
}

// "'yes' 5 of 50, 'no' 15 of 150"
std::string list_classes(const RecordsByClass& classes, const std::vector<Index>& held,
                         const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const auto& [label, ids] : classes) {
    if (shown.size() == kMaxShownClasses) break;
    const bool named = label >= 0 && label < static_cast<Scalar>(names.size());
    const std::string name =
        named ? in_quotes(names[static_cast<std::size_t>(label)]) : fmt::format("{:g}", label);
    shown.push_back(
        fmt::format("{} {} of {}", name, with_commas(held[shown.size()]), with_commas(std::ssize(ids))));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), classes.size() > kMaxShownClasses ? ", ..." : "");
}

ShareChoice share_by_class(const ValidationPart& part, const FoldTargets& of, std::uint64_t seed) {
  const RecordsByClass classes = records_by_class(of.targets, seed, part);
  std::vector<Index> sizes;
  for (const auto& [label, ids] : classes) sizes.push_back(std::ssize(ids));
  const std::vector<Index> held = apportion(part.share, sizes);
  ShareChoice choice{.fold_of = Folds(of.targets.size()), .note = {}};
  auto count = held.begin();
  for (const auto& [label, ids] : classes) {
    for (Index i = 0; i < *count; ++i) at(choice.fold_of, at(ids, i)) = 1;
    ++count;
  }
  choice.note = {.text = fmt::format("of each of the {} classes its share: {}", classes.size(),
                                     list_classes(classes, held, of.class_names)),
                 .figures = {{"taken", held}, {"of_class", sizes}}};
  return choice;
}

Folds fold_by_class(const ValidationPart& part, const std::vector<Scalar>& targets, std::uint64_t seed) {
  Folds fold_of(targets.size());
  Index next = 0;
  for (const auto& [label, ids] : records_by_class(targets, seed, part)) {
    for (const Index id : ids) at(fold_of, id) = static_cast<FoldNumber>(next++ % part.folds + 1);
  }
  return fold_of;
}

struct RecordGroup {
  Index size = 0;
  std::uint64_t hash = 0;
  FoldNumber fold = 0;
};
using RecordGroups = std::map<std::string, RecordGroup>;  // by their value

RecordGroups group_records(const std::vector<std::string>& values, std::uint64_t seed) {
  RecordGroups groups;
  for (const std::string& value : values) ++groups[value].size;
  for (auto& [value, group] : groups) group.hash = hash_text(fmt::format("{} {}", seed, value));
  return groups;
}

Folds folds_of(const std::vector<std::string>& values, const RecordGroups& groups) {
  Folds fold_of;
  for (const std::string& value : values) fold_of.push_back(groups.at(value).fold);
  return fold_of;
}

ShareChoice share_by_group(const ValidationPart& part, const std::vector<std::string>& values,
                           std::uint64_t seed) {
  RecordGroups groups = group_records(values, seed);
  error_if(
      groups.size() < 2,
      "{}: column {} has one value only, {}: expected groups of which some can be held back, and others not",
      part.setting, in_quotes(part.column), in_quotes(values.front()));
  std::vector<RecordGroup*> order;
  for (auto& [value, group] : groups) order.push_back(&group);
  std::ranges::stable_sort(order, {}, &RecordGroup::hash);
  const Index goal = size_of_share(part.share, std::ssize(values));
  std::size_t held = 0;
  Index records = 0;
  for (RecordGroup* group : order) {
    if (group->size > 2 * (goal - records) || held + 1 == groups.size()) continue;
    group->fold = 1;
    records += group->size;
    ++held;
  }
  if (held == 0) {
    const auto size = [](const auto& each) { return each.second.size; };
    std::ranges::min_element(groups, {}, size)->second.fold = 1;
    held = 1;
  }
  return {.fold_of = folds_of(values, groups),
          .note = {.text = fmt::format("all of {} of the {} groups of column {}",
                                       with_commas(static_cast<Index>(held)), with_commas(std::ssize(groups)),
                                       in_quotes(part.column)),
                   .figures = {{"groups", {held, groups.size()}}}}};
}

Folds fold_by_group(const ValidationPart& part, const std::vector<std::string>& values, std::uint64_t seed) {
  RecordGroups groups = group_records(values, seed);
  error_if(std::ssize(groups) < part.folds, "{}: column {} has {} different values, too few for {} folds",
           part.setting, in_quotes(part.column), groups.size(), part.folds);
  std::vector<RecordGroup*> order;
  for (auto& [value, group] : groups) order.push_back(&group);
  std::ranges::stable_sort(order, [](const RecordGroup* a, const RecordGroup* b) {
    return a->size != b->size ? a->size > b->size : a->hash < b->hash;
  });
  std::vector<Index> sizes(static_cast<std::size_t>(part.folds));
  for (RecordGroup* group : order) {
    const auto least = std::ranges::min_element(sizes);
    *least += group->size;
    group->fold = static_cast<FoldNumber>(least - sizes.begin() + 1);
  }
  return folds_of(values, groups);
}

// The records in order of time.
class RecordsByTime {
 public:
  RecordsByTime(const ColumnValues& values, const ValidationPart& part)
      : texts_(values.texts), times_(times_of(values, part.setting)), ids_(texts_.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
    std::ranges::stable_sort(ids_, {}, [&](Index id) { return at(times_.numbers, id); });
  }

  Index rows() const { return std::ssize(ids_); }
  bool short_years() const { return times_.short_years; }
  const std::string& value(Index position) const { return at(texts_, at(ids_, position)); }
  /// Whether no time is on both sides of the position, in [0, rows()].
  bool begins_a_time(Index position) const {
    return position == 0 || position == rows() || time(position - 1) < time(position);
  }
  /// The last position up to this one that begins a time.
  Index begin_of_time(Index position) const {
    while (!begins_a_time(position)) --position;
    return position;
  }
  void mark(Range positions, Index fold, Folds& fold_of) const {
    for (Index i = positions.begin; i < positions.end; ++i)
      at(fold_of, at(ids_, i)) = static_cast<FoldNumber>(fold);
  }

 private:
  double time(Index position) const { return at(times_.numbers, at(ids_, position)); }

  const std::vector<std::string>& texts_;
  FoldTimes times_;
  std::vector<Index> ids_;
};

ShareChoice share_by_time(const ValidationPart& part, const ColumnValues& values) {
  const RecordsByTime records(values, part);
  const Index rows = records.rows();
  const Index goal =
      std::clamp(rows - size_of_share(part.share, rows), Index{1}, std::max(Index{1}, rows - 1));
  const Index before = records.begin_of_time(goal);
  Index after = goal;
  while (!records.begins_a_time(after)) ++after;
  const bool later = after < rows && (before == 0 || after - goal < goal - before);
  const Index begin = later ? after : before;
  error_if(begin == 0 || begin == rows,
           "{}: column {} has one value only, {}: expected times, the last of which can be held back",
           part.setting, in_quotes(part.column), in_quotes(values.texts.front()));
  ShareChoice choice{.fold_of = Folds(values.texts.size()), .note = {}};
  records.mark({begin, rows}, 1, choice.fold_of);
  const std::string& from = records.value(begin);
  const std::string& to = records.value(rows - 1);
  const std::string& others = records.value(begin - 1);
  choice.note = {
      .text = fmt::format("the last in column {}, from {} to {}; the others are up to {}",
                          in_quotes(part.column), in_quotes(from), in_quotes(to), in_quotes(others)),
      .figures = {{"from", from}, {"to", to}, {"others_to", others}}};
  if (records.short_years()) choice.note.text += "; years of two digits are those of 1969 to 2068";
  return choice;
}

// The records from the one end of the span to the other.
ShareChoice span_of_time(const ValidationPart& part, const ColumnValues& values) {
  ColumnValues bounded = values;
  bounded.texts.push_back(part.from);
  if (!part.to.empty()) bounded.texts.push_back(part.to);
  const FoldTimes times = times_of(bounded, part.setting);
  const std::size_t rows = values.texts.size();
  const double from = times.numbers[rows];
  const double to = part.to.empty() ? std::numeric_limits<double>::infinity() : times.numbers[rows + 1];
  ShareChoice choice{.fold_of = Folds(rows), .note = {}};
  Index before = 0;
  Index after = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const bool is_after = times.numbers[i] >= to;
    choice.fold_of[i] = times.numbers[i] < from ? FoldNumber{0} : is_after ? kUnusedFold : FoldNumber{1};
    before += times.numbers[i] < from ? 1 : 0;
    after += is_after ? 1 : 0;
  }
  error_if(std::ranges::count(choice.fold_of, 1) == 0 || before == 0,
           "{}: {} of the {} records come before that span, {} lie in it and {} behind: expected some before "
           "it and in it",
           part.setting, with_commas(before), with_commas(std::ssize(values.texts)),
           with_commas(std::ranges::count(choice.fold_of, 1)), with_commas(after));
  choice.note = {.text = fmt::format("from {}{} in column {}", in_quotes(part.from),
                                     part.to.empty() ? "" : fmt::format(" to before {}", in_quotes(part.to)),
                                     in_quotes(part.column)),
                 .figures = {{"after", after}}};
  if (after > 0)
    choice.note.text += fmt::format("; the {} records after it are in no set", with_commas(after));
  return choice;
}

Folds fold_by_time(const ValidationPart& part, const ColumnValues& values) {
  const RecordsByTime records(values, part);
  const Index rows = records.rows();
  const Index size = rows / (part.folds + 1);
  // The first position of a fold: back to where its time begins.
  const auto begin_of = [&](Index fold) {
    return records.begin_of_time(rows - (part.folds - fold + 1) * size);
  };
  Folds fold_of(values.texts.size());
  for (Index fold = 1; fold <= part.folds; ++fold) {
    const Range positions{begin_of(fold), fold == part.folds ? rows : begin_of(fold + 1)};
    error_if(positions.empty() || positions.begin == 0,
             "{}: column {} has too few different times for {} folds: records of one time stay together",
             part.setting, in_quotes(part.column), part.folds);
    records.mark(positions, fold, fold_of);
  }
  return fold_of;
}

Folds fold_by_column(const ValidationPart& part, const ColumnValues& values) {
  const std::vector<double> places = places_of(values, part.setting);
  std::map<double, FoldNumber> folds;
  for (const double place : places) folds.emplace(place, FoldNumber{0});
  error_if(std::ssize(folds) != part.folds,
           "{}: column {} has {} different values, expected {}, one for each fold", part.setting,
           in_quotes(part.column), with_commas(std::ssize(folds)), part.folds);
  FoldNumber number = 0;
  for (auto& [place, fold] : folds) fold = ++number;
  Folds fold_of;
  for (const double place : places) fold_of.push_back(folds.at(place));
  return fold_of;
}

Folds fold_by_record(Index rows, Index folds, std::uint64_t seed) {
  const KeyedPermutation order(rows, {.seed = seed, .purpose = Purpose::kFold});
  Folds fold_of;
  for (Index id = 0; id < rows; ++id)
    fold_of.push_back(static_cast<FoldNumber>(order(id) * folds / rows + 1));
  return fold_of;
}

// The records that parts are taken from: those of a table by the texts of its columns, others by their
// targets.
struct Parted {
  const TableRecords* table;  // or, where this is null:
  const RecordSource* whole;
  PeerGroup& peers;

  Index rows() const { return table != nullptr ? table->rows : whole->info().rows; }
  const std::string& name() const { return table != nullptr ? table->name : whole->info().name; }
};

// Errors: ConfigError if so many of the records cannot be divided.
void check_divisible(const ValidationPart& part, const Parted& records, Index count) {
  error_if(records.whole != nullptr && records.whole->info().record_bytes == 0,
           "{} needs records of files; synthetic ones have a validation set of their own, "
           "data.synthetic_validation_rows",
           part.setting);
  error_if(part.reads_column() && records.table == nullptr,
           "{} reads a column of a table (csv), and '{}' is none: its records can be divided by record or by "
           "class (stratified)",
           part.setting, records.name());
  error_if(count < part.folds, "{} needs {} records at least, and '{}' has {}", part.setting, part.folds,
           records.name(), count);
}

// The classes of the records, or the values of a column, if they are divided by either.
struct DividedBy {
  FoldTargets classes;
  ColumnValues values;
};

Folds choose_folds(const ValidationPart& part, const DividedBy& by, std::uint64_t seed, Index rows) {
  if (part.by == By::kClass) return fold_by_class(part, by.classes.targets, seed);
  if (part.by == By::kGroup) return fold_by_group(part, by.values.texts, seed);
  if (part.by == By::kTime) return fold_by_time(part, by.values);
  if (part.by == By::kColumn) return fold_by_column(part, by.values);
  return fold_by_record(rows, part.folds, seed);
}

// Whether a hash of its number takes a record for a share of them.
bool hash_takes(double share, std::uint64_t key, Index id) {
  return static_cast<double>(id_hash(key, id) >> 11) * 0x1p-53 < share;
}

ShareChoice choose_share(const ValidationPart& part, const DividedBy& by, std::uint64_t seed,
                         std::span<const Index> ids) {
  if (!part.from.empty()) return span_of_time(part, by.values);
  if (part.by == By::kClass) return share_by_class(part, by.classes, seed);
  if (part.by == By::kGroup) return share_by_group(part, by.values.texts, seed);
  if (part.by == By::kTime) return share_by_time(part, by.values);
  ShareChoice choice{.fold_of = {}, .note = {.text = "by a hash of their numbers"}};
  for (const Index id : ids) choice.fold_of.push_back(hash_takes(part.share, seed, id) ? 1 : 0);
  return choice;
}

// *Collective.* The values by which the records `ids`, ascending, are divided.
DividedBy divided_by(const ValidationPart& part, const Parted& records, std::span<const Index> ids) {
  const auto choose = [&ids](auto& all) {
    if (all.empty()) return;
    for (Index i = 0; i < std::ssize(ids); ++i) {
      if (i < at(ids, i)) at(all, i) = std::move(at(all, at(ids, i)));
    }
    all.resize(ids.size());
  };
  DividedBy by;
  const bool by_class = part.by == By::kClass;
  if (by_class && records.table == nullptr) by.classes = read_targets(*records.whole, part, records.peers);
  records.peers.agree([&] {
    if (by_class && records.table != nullptr) by.classes = targets_of(*records.table, part);
    if (part.reads_column()) by.values = records.table->texts.values(part.column, part.setting);
  });
  choose(by.classes.targets);
  choose(by.values.texts);
  return by;
}

// A column that says only where a record belongs is no feature, unless a list takes it for one.
void ignore_unused(TableOptions& table, const std::string& name) {
  const auto names_it = [&](const auto* list) { return std::ranges::count(*list, name) > 0; };
  const std::array lists{&table.numeric, &table.categorical, &table.ignore};
  if (std::ranges::none_of(lists, names_it)) table.ignore.push_back(name);
}

}  // namespace

bool HoldOut::holds(Index id) const {
  return fold_of ? at(*fold_of, id) == fold : hash_takes(share, key, id);
}

bool HoldOut::leaves(Index id) const {
  if (!fold_of) return !holds(id);
  const FoldNumber number = at(*fold_of, id);
  return number >= 0 && (forward ? number < fold : number != fold);
}

DataParts parts_beside_files(const DataOptions& data) {
  DataParts parts{.validation = validation_part(data), .test = test_part(data)};
  if (!parts.validation || !is_there(data.validation)) return parts;
  throw ConfigError(
      "{} is a part of the training samples, but there is a file of that name, too: write \"./{}\" if you "
      "mean the file, or rename it",
      parts.validation->setting, excerpt(data.validation));
}

DataOptions data_of_files(const DataOptions& data, const DataParts& parts) {
  DataOptions opened = data;
  if (parts.validation) opened.validation.clear();
  for (const auto& part : {parts.validation, parts.test}) {
    if (!part || (part->by != By::kGroup && part->by != By::kColumn)) continue;
    ignore_unused(opened.table, part->column);
  }
  const WindowOptions& windows = data.table.windows;
  if (!windows.any()) return opened;
  std::vector<std::string> names = windows.series;
  names.push_back(windows.time);
  for (const std::string& name : names) {
    const auto declares_it = [&](const std::string& text) {
      return text.starts_with(name) && trimmed(text.substr(name.size())).starts_with(':');
    };
    if (std::ranges::count(windows.future, name) == 0 &&
        std::ranges::none_of(data.table.columns, declares_it))
      ignore_unused(opened.table, name);
  }
  return opened;
}

namespace {

// *Collective.* Chooses records for the part among those without a mark: those of a share get `number`, those
// of folds theirs. Gives a sentence about them.
Note mark(const ValidationPart& part, FoldNumber number, std::uint64_t seed, const Parted& records,
          Folds& marks) {
  std::vector<Index> ids;
  for (Index id = 0; id < std::ssize(marks); ++id) {
    if (at(marks, id) == 0) ids.push_back(id);
  }
  records.peers.agree([&] { check_divisible(part, records, std::ssize(ids)); });
  const DividedBy by = divided_by(part, records, ids);
  ShareChoice choice;
  records.peers.agree([&] {
    if (part.folds > 0) {
      choice.fold_of = choose_folds(part, by, seed, std::ssize(ids));
      return;
    }
    choice = choose_share(part, by, seed, ids);
    const Index taken = std::ranges::count(choice.fold_of, 1);
    error_if(taken == 0 && number == kTestFold, "{} takes none of the {} records of '{}': expected some",
             part.setting, with_commas(records.rows()), records.name());
    nlohmann::ordered_json figures{{"records", taken}, {"of", records.rows()}};
    if (choice.note.figures.is_object()) figures.update(choice.note.figures);
    choice.note = {
        .text = fmt::format("{} set, {}: {} of the {} records of '{}', {}",
                            number == kTestFold ? "test" : "validation", to_string(part), with_commas(taken),
                            with_commas(records.rows()), records.name(), choice.note.text),
        .figures = {{"part", figures}}};
    std::ranges::replace(choice.fold_of, FoldNumber{1}, number);
  });
  for (std::size_t i = 0; i < ids.size(); ++i) at(marks, ids[i]) = choice.fold_of[i];
  return choice.note;
}

HoldOut hold_out(const DataParts& parts, std::uint64_t seed, const Parted& records) {
  constexpr std::uint64_t kTestSeed = 0x7e57'0000;  // so that two shares are not of the same records
  HoldOut held{.key = seed, .fold = kNoFold};
  if (parts.validation) {
    const ValidationPart& part = *parts.validation;
    held.setting = part.setting;
    held.share = part.share;
    held.fold = part.folds == 0 ? 1 : part.fold;
    held.forward = part.folds > 0 && part.by == By::kTime;
    if (part.folds == 0 && part.by == By::kRecord && !parts.test) return held;
  }
  Folds marks(static_cast<std::size_t>(records.rows()));
  if (parts.test) {
    if (!parts.validation) held.setting = parts.test->setting;
    held.test_note = mark(*parts.test, kTestFold, seed + kTestSeed, records, marks);
  }
  if (parts.validation) held.note = mark(*parts.validation, 1, seed, records, marks);
  held.fold_of = std::make_shared<const Folds>(std::move(marks));
  return held;
}

}  // namespace

std::vector<std::string> dividing_columns(const DataParts& parts, const TableOptions& table) {
  std::vector<std::string> names;
  for (const auto& part : {parts.validation, parts.test}) {
    if (part && part->reads_column()) names.push_back(part->column);
    if (part && part->by == By::kClass && table.label.size() == 1) names.push_back(table.label.front());
  }
  if (!table.windows.any()) return names;
  names.push_back(table.windows.time);
  names.insert(names.end(), table.windows.series.begin(), table.windows.series.end());
  return names;
}

HoldOut hold_out(const DataParts& parts, std::uint64_t seed, const TableRecords& table, PeerGroup& peers) {
  return hold_out(parts, seed, {&table, nullptr, peers});
}

HoldOut hold_out(const DataParts& parts, std::uint64_t seed, const RecordSource& whole, PeerGroup& peers) {
  return hold_out(parts, seed, {nullptr, &whole, peers});
}

}  // namespace lockstep
