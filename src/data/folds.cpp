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
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/message.h"
#include "lockstep/data/table/number.h"
#include "lockstep/data/table/table_text.h"

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

// *Collective.* The first target of each record: every rank reads a run of chunks.
std::vector<Scalar> read_targets(const RecordSource& whole, PeerGroup& peers) {
  const DatasetInfo& info = whole.info();
  std::vector<Scalar> mine;
  peers.agree([&] {
    if (info.target_columns != 1) {
      throw ConfigError(
          fmt::format("data.fold_by = \"class\" needs one label, found {}", info.target_columns));
    }
    const std::unique_ptr<ChunkReader> reader = whole.reader({});
    std::vector<std::byte> packed;
    const auto bytes = static_cast<std::size_t>(info.record_bytes);
    const Range share = split_evenly(std::ssize(whole.chunks()), peers.size(), peers.rank());
    for (Index i = share.begin; i < share.end; ++i) {
      const Index records = at(whole.chunks(), i).records.size();
      packed.resize(static_cast<std::size_t>(records) * bytes);
      reader->read(i, packed);
      const std::byte* label =
          packed.data() + bytes - static_cast<std::size_t>(info.label_columns()) * sizeof(Scalar);
      for (Index record = 0; record < records; ++record, label += bytes) {
        std::memcpy(&mine.emplace_back(), label, sizeof(Scalar));
      }
    }
  });
  std::vector<Scalar> all;
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    MessageReader reader(message);
    while (!reader.done()) all.push_back(reader.take<Scalar>());
  }
  return all;
}

Folds by_class(const std::vector<Scalar>& targets, Index folds, std::uint64_t seed) {
  std::map<Scalar, std::vector<Index>> classes;
  const KeyedPermutation order = order_of(std::ssize(targets), seed);
  for (Index position = 0; position < std::ssize(targets); ++position) {
    const Index id = order.inverse(position);
    classes[at(targets, id)].push_back(id);
  }
  constexpr std::size_t kMaxClasses = 1000;
  if (classes.size() > kMaxClasses) {
    throw ConfigError(
        fmt::format("data.fold_by = \"class\": the label has {} different values, expected classes, "
                    "{} at most; data.fold_by = \"record\" divides records of any kind",
                    with_commas(std::ssize(classes)), with_commas(kMaxClasses)));
  }
  Folds fold_of(targets.size());
  Index next = 0;
  for (const auto& [label, ids] : classes) {
    for (const Index id : ids) at(fold_of, id) = static_cast<std::int16_t>(next++ % folds + 1);
  }
  return fold_of;
}

// *Collective.* The text of a column in each record of the table.
std::vector<std::string> read_column(const FoldOptions& options, const DataOptions& data,
                                     const RecordSource& whole, PeerGroup& peers) {
  peers.agree([&] {
    if (data.format == "csv") return;
    throw ConfigError(
        fmt::format("data.fold_column reads a column of a table (csv), and the data have the format "
                    "'{}': data.fold_by = \"record\" or \"class\" divide them",
                    data.format));
  });
  const TableText table = open_table_text(whole.files(), data.table, peers);
  MessageWriter mine;
  peers.agree([&] {
    const auto name = std::ranges::find(table.names, options.column);
    if (name == table.names.end()) {
      throw ConfigError(fmt::format("data.fold_column: there is no column {} in '{}'{}",
                                    in_quotes(options.column), whole.info().name,
                                    suggestion(options.column, table.names)));
    }
    std::vector<RowColumn> columns(table.names.size());
    at(columns, name - table.names.begin()) = {.reading = Reading::kText};
    const std::vector<std::string> no_missing;
    TableReader reader(table, columns, 1, no_missing);
    const Range share = at(share_text_chunks(table.text, peers.size()), peers.rank());
    for (Index i = share.begin; i < share.end; ++i) {
      reader.for_each_record(
          at(table.text.chunks, i), [&](std::span<const Cell> cells) { mine.put_text(cells[0].text); },
          [&](const std::string&) { mine.put_text(""); });  // it is among those that were left out
    }
  });
  std::vector<std::string> all;
  const std::span<const Index> skipped = whole.skipped();
  auto next = skipped.begin();
  Index position = 0;
  for (const Bytes& message : peers.all_gather(mine.bytes())) {
    for (MessageReader reader(message); !reader.done(); ++position) {
      std::string text = reader.take_text();
      if (next != skipped.end() && *next == position) {
        ++next;
      } else {
        all.push_back(std::move(text));
      }
    }
  }
  return all;
}

// In the order of numbers if all are numbers, else of texts, in which dates such as 2024-01-31 are in order.
class ValueOrder {
 public:
  explicit ValueOrder(const std::vector<std::string>& values) {
    numeric_ =
        std::ranges::all_of(values, [](const std::string& text) { return parse_number(text).has_value(); });
  }
  bool operator()(const std::string& a, const std::string& b) const {
    return numeric_ ? *parse_number(a) < *parse_number(b) : a < b;
  }

 private:
  bool numeric_ = false;
};

void refuse_empty(const std::vector<std::string>& values, const FoldOptions& options) {
  const auto empty = std::ranges::find(values, std::string());
  if (empty == values.end()) return;
  throw ConfigError(
      fmt::format("data.fold_column: column {} is empty in record {} (counted from 0), expected a value "
                  "in each",
                  in_quotes(options.column), with_commas(empty - values.begin())));
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

Folds by_time(const std::vector<std::string>& values, const FoldOptions& options) {
  const ValueOrder order(values);
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

Folds by_column(const std::vector<std::string>& values, const FoldOptions& options) {
  std::map<std::string, std::int16_t, ValueOrder> folds{ValueOrder(values)};
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
  std::vector<std::string> values;
  if (options.reads_column()) values = read_column(options, data, whole, peers);
  const std::vector<Scalar> targets = of_class ? read_targets(whole, peers) : std::vector<Scalar>();
  peers.agree([&] {
    if (options.reads_column()) {
      if (std::ssize(values) != rows) {
        throw DataError(fmt::format("'{}' changed while it was read", whole.info().name));
      }
      refuse_empty(values, options);
    }
    assignment->forward = options.by == "time";
    assignment->fold_of = of_class                 ? by_class(targets, options.folds, seed)
                          : options.by == "group"  ? by_group(values, options, seed)
                          : options.by == "time"   ? by_time(values, options)
                          : options.by == "column" ? by_column(values, options)
                                                   : by_record(rows, options.folds, seed);
  });
  return assignment;
}

}  // namespace lockstep
