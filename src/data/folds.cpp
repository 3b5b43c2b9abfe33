// How records become folds.
//
// record: a keyed permutation of the records is cut into parts that differ by one record at most.
// class: the records of each class, in the order of that permutation, are dealt to the folds in turn, class
//   after class without a break, so that neither a class nor a fold has more than one record too many.
// group: the groups, the largest first, go to the fold with the fewest records (as in scikit-learn's
//   GroupKFold); groups of one size follow a hash of their value.
// time: the records in order of time are cut into folds + 1 parts, the last ones of one size (as in
//   scikit-learn's TimeSeriesSplit); the first is in no fold. Records of one time stay together.
// column: the values of the column, in order, are the folds.
#include "lockstep/data/folds/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "fold_values.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Folds = std::vector<std::int16_t>;

// Positions of the records in an order that the seed decides.
KeyedPermutation order_of(Index rows, std::uint64_t seed) {
  return {rows, {.seed = seed, .purpose = Purpose::kFold}};
}

Folds by_record(Index rows, Index folds, std::uint64_t seed) {
  const KeyedPermutation order = order_of(rows, seed);
  Folds fold_of;
  for (Index id = 0; id < rows; ++id)
    fold_of.push_back(static_cast<std::int16_t>(order(id) * folds / rows + 1));
  return fold_of;
}

Folds by_class(const std::vector<Scalar>& targets, Index folds, std::uint64_t seed) {
  const RecordsByClass classes =
      records_by_class(targets, seed, "data.fold_by = \"class\"", "data.fold_by = \"record\" divides");
  Folds fold_of(targets.size());
  Index next = 0;
  for (const auto& [label, ids] : classes) {
    for (const Index id : ids) at(fold_of, id) = static_cast<std::int16_t>(next++ % folds + 1);
  }
  return fold_of;
}

Folds by_group(const std::vector<std::string>& values, const FoldOptions& options, std::uint64_t seed) {
  struct Group {
    Index size = 0;
    std::uint64_t hash = 0;
    std::int16_t fold = 0;
  };
  std::map<std::string, Group> groups;
  for (const std::string& value : values) ++groups[value].size;
  if (std::ssize(groups) < options.folds) {
    throw ConfigError(
        fmt::format("data.fold_column: column {} has {} different values, too few for data.folds = {}",
                    in_quotes(options.column), groups.size(), options.folds));
  }
  std::vector<Group*> sorted;
  for (auto& [value, group] : groups) {
    group.hash = hash_text(fmt::format("{} {}", seed, value));
    sorted.push_back(&group);
  }
  std::ranges::stable_sort(sorted, [](const Group* a, const Group* b) {
    return a->size != b->size ? a->size > b->size : a->hash < b->hash;
  });
  std::vector<Index> sizes(static_cast<std::size_t>(options.folds));
  for (Group* group : sorted) {
    const auto least = std::ranges::min_element(sizes);
    *least += group->size;
    group->fold = static_cast<std::int16_t>(least - sizes.begin() + 1);
  }
  Folds fold_of;
  for (const std::string& value : values) fold_of.push_back(groups[value].fold);
  return fold_of;
}

Folds by_time(const std::vector<std::string>& values, const ValueOrder& order, const FoldOptions& options) {
  std::vector<Index> ids(values.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](Index a, Index b) { return order(at(values, a), at(values, b)); });
  const Index rows = std::ssize(values);
  const Index size = rows / (options.folds + 1);
  // The first position of fold k: back to where its time begins.
  const auto begin_of = [&](Index fold) {
    Index begin = rows - (options.folds - fold + 1) * size;
    while (0 < begin && begin < rows && !order(at(values, at(ids, begin - 1)), at(values, at(ids, begin))))
      --begin;
    return begin;
  };
  Folds fold_of(values.size());
  for (Index fold = 1; fold <= options.folds; ++fold) {
    const Range positions{begin_of(fold), fold == options.folds ? rows : begin_of(fold + 1)};
    if (positions.empty() || positions.begin == 0) {
      throw ConfigError(
          fmt::format("data.fold_column: column {} has too few different times for data.folds = {}: "
                      "records of one time stay together",
                      in_quotes(options.column), options.folds));
    }
    for (Index i = positions.begin; i < positions.end; ++i)
      at(fold_of, at(ids, i)) = static_cast<std::int16_t>(fold);
  }
  return fold_of;
}

Folds by_column(const std::vector<std::string>& values, const ValueOrder& order, const FoldOptions& options) {
  std::map<std::string, std::int16_t, ValueOrder> folds{order};
  for (const std::string& value : values) folds.emplace(value, std::int16_t{0});
  if (std::ssize(folds) != options.folds) {
    throw ConfigError(
        fmt::format("data.fold_column: column {} has {} different values, expected data.folds = {}",
                    in_quotes(options.column), with_commas(std::ssize(folds)), options.folds));
  }
  std::int16_t number = 0;
  for (auto& [value, fold] : folds) fold = ++number;
  Folds fold_of;
  for (const std::string& value : values) fold_of.push_back(folds.at(value));
  return fold_of;
}

}  // namespace

bool FoldAssignment::validates(Index fold, Index record) const {
  return at(fold_of, record) == fold;
}

bool FoldAssignment::trains(Index fold, Index record) const {
  return forward ? at(fold_of, record) < fold : at(fold_of, record) != fold;
}

std::shared_ptr<const FoldAssignment> assign_folds(const FoldOptions& options, const DataOptions& data,
                                                   std::uint64_t seed, const RecordSource& whole,
                                                   PeerGroup& peers) {
  auto assignment = std::make_shared<FoldAssignment>();
  const Index rows = whole.info().rows;
  peers.agree([&] {
    if (whole.info().record_bytes == 0) {
      throw ConfigError(
          "data.fold needs records of files; synthetic ones have a validation set of their own, "
          "data.synthetic_validation_rows");
    }
    if (rows >= options.folds) return;
    throw ConfigError(fmt::format("data.folds = {} needs as many records at least, and '{}' has {}",
                                  options.folds, whole.info().name, rows));
  });
  const bool of_class = options.by == "class";
  const FoldColumn column{.name = options.column, .setting = "data.fold_column"};
  FoldValues values;
  if (options.reads_column()) values = read_column(column, data, whole, peers);
  std::vector<Scalar> targets;
  if (of_class) targets = read_targets(whole, "data.fold_by = \"class\"", peers);
  peers.agree([&] {
    assignment->forward = options.by == "time";
    const auto order = [&] { return ValueOrder(values, column); };
    assignment->fold_of = of_class                 ? by_class(targets, options.folds, seed)
                          : options.by == "group"  ? by_group(values.texts, options, seed)
                          : options.by == "time"   ? by_time(values.texts, order(), options)
                          : options.by == "column" ? by_column(values.texts, order(), options)
                                                   : by_record(rows, options.folds, seed);
  });
  return assignment;
}

}  // namespace lockstep
