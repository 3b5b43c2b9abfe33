#include "encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// 1 at the position, 0 elsewhere; below 0 it is nowhere.
void put_one_hot(Index position, Index width, Scalar* features) {
  std::fill_n(features, width, Scalar{0});
  if (position >= 0) features[position] = 1;
}

// The columns of any table, that of the training data or another, as a schema wants them: found by name, or
// by position if the table has no header.

// The column of the table for each of the schema, the number of columns for none. Without a header the
// position decides; a table to predict from may come without its labels and weights.
std::vector<std::size_t> find_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<std::size_t> found;
  if (table.header) {
    std::unordered_map<std::string_view, std::size_t> number_of;  // index of each column, by its name
    for (std::size_t i = 0; i < table.names.size(); ++i) number_of.emplace(table.names[i], i);
    for (const TableColumn& column : schema.columns) {
      const auto position = number_of.find(column.name);
      found.push_back(position == number_of.end() ? table.names.size() : position->second);
    }
    return found;
  }
  const std::size_t all = schema.columns.size();
  const std::size_t without =
      all - static_cast<std::size_t>(std::ranges::count_if(schema.columns, &TableColumn::is_label_or_weight));
  const std::size_t names = table.names.size();
  error_if<DataError>(
      names != all && (labels || names != without), "'{}' has {} columns and no header, expected {}{}",
      table.text.files.front().path, names, all,
      labels ? ""
             : fmt::format(" (or {} without labels{})", without, schema.weighted() ? " and weights" : ""));
  std::size_t next = 0;
  for (const TableColumn& column : schema.columns) {
    found.push_back(column.is_label_or_weight() && names != all ? names : next++);
  }
  return found;
}

}  // namespace

Encoder::Encoder(const TableSchema& schema, bool labels) : features_(schema.features()) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    const bool wanted = labels || !column.is_label_or_weight();
    if (column.kind != ColumnKind::kIgnored && wanted) add(column, i);
  }
  for (const Numeric& number : numbers_) number_features_ += number.features();
  targets_ = static_cast<Index>(number_labels_.size() + category_labels_.size());
  record_bytes_ = static_cast<Index>(numbers_.size() + categories_.size()) * 4 + label_columns() * 4;
}

void Encoder::add(const TableColumn& column, std::size_t cell) {
  if (column.weight) {
    weight_ = Numeric{.cell = cell};
    return;
  }
  if (column.kind == ColumnKind::kCategorical) {
    Categorical added{.cell = cell, .label = column.label, .width = column.width()};
    if (column.is_hashed()) added.buckets = static_cast<std::uint32_t>(column.buckets);
    if (column.encoding == Encoding::kIndex) added.width = 0;
    std::uint32_t next = column.label ? 0 : 1;
    if (!column.is_hashed()) {
      for (const std::string& value : column.values) added.positions.emplace(value, next++);
    }
    if (column.label) {
      constexpr std::size_t kMaxShown = 10;
      added.classes = listed(column.values, kMaxShown);
    }
    (column.label ? category_labels_ : categories_).push_back(std::move(added));
    return;
  }
  const LabelScale scale = scale_of(column);
  Numeric added{.cell = cell,
                .logarithm = scale.logarithm,
                .shift = scale.shift,
                .factor = scale.factor(),
                .clips = scale.clips};
  added.missing = static_cast<Scalar>(scale.scaled(missing_number(column)));
  if (column.label) {
    added.missing = std::numeric_limits<Scalar>::quiet_NaN();  // a record may lack some of several labels
    number_labels_.push_back(added);
  } else if (column.date) {
    add_date(column, added);
  } else if (column.bins == 0 || column.keeps_number) {
    numbers_.push_back(added);
  }
  if (!column.is_feature() || column.date || column.bins == 0) return;
  numbers_.push_back({.cell = cell,
                      .logarithm = scale.logarithm,
                      .missing = static_cast<Scalar>(bin_position(column.edges, missing_number(column))),
                      .bins = column.bin_features(),
                      .edges = &column.edges});
}

// A missing date is on no day of the year, and in the middle of all cycles.
void Encoder::add_date(const TableColumn& column, const Numeric& days) {
  for (const DatePart part : column.date->parts) {
    if (part == DatePart::kDay) {
      numbers_.push_back(days);
      continue;
    }
    if (part == DatePart::kDayOfYear) {
      numbers_.push_back({.cell = days.cell, .missing = -1, .part = part});
      continue;
    }
    for (const bool cosine : {false, true}) {
      numbers_.push_back({.cell = days.cell, .missing = 0, .part = part, .cosine = cosine});
    }
  }
}

Scalar Encoder::number_of(const Numeric& column, const Cell& cell) const {
  if (cell.missing) return column.missing;
  if (column.part == DatePart::kDayOfYear) return static_cast<Scalar>(day_of_year(cell.number));
  if (column.part != DatePart::kDay) {
    return static_cast<Scalar>(cycle_of(cell.number, column.part)[column.cosine ? 1 : 0]);
  }
  const double x = column.logarithm ? signed_log(cell.number) : cell.number;
  if (column.edges != nullptr) return static_cast<Scalar>(bin_position(*column.edges, x));
  const double straight = (x - column.shift) * column.factor;
  const auto scaled = static_cast<Scalar>(column.clips ? smooth_clip(straight) : straight);
  if (!std::isfinite(scaled)) {
    throw BadRecord{static_cast<Index>(column.cell), fmt::format("{}", cell.number),
                    "a number that single precision can hold"};
  }
  return scaled;
}

std::uint32_t Encoder::position_of(const Categorical& column, const Cell& cell,
                                   std::span<Index> unseen) const {
  const std::string_view text = cell.missing ? std::string_view() : cell.text;
  const auto found = column.positions.find(text);
  if (found != column.positions.end()) return found->second;
  if (!is_text(text)) throw BadRecord{static_cast<Index>(column.cell), in_quotes(text), "UTF-8 text"};
  if (column.buckets > 0) return static_cast<std::uint32_t>(hash_text(text) % column.buckets);
  if (column.label) {
    throw BadRecord{static_cast<Index>(column.cell), in_quotes(text),
                    fmt::format("a class of the training data: {}", column.classes)};
  }
  ++unseen[column.cell];
  return 0;
}

void Encoder::pack(std::span<const Cell> cells, std::byte* packed, std::span<Index> unseen) const {
  const auto put = [&packed](auto value) {
    static_assert(sizeof value == 4);
    std::memcpy(packed, &value, sizeof value);
    packed += sizeof value;
  };
  for (const Numeric& column : numbers_) put(number_of(column, cells[column.cell]));
  for (const Categorical& column : categories_) put(position_of(column, cells[column.cell], unseen));
  for (const Numeric& column : number_labels_) put(number_of(column, cells[column.cell]));
  for (const Categorical& column : category_labels_) {
    const Cell& cell = cells[column.cell];
    put(cell.missing && targets_ > 1 ? std::numeric_limits<Scalar>::quiet_NaN()
                                     : static_cast<Scalar>(position_of(column, cell, unseen)));
  }
  if (weight_) put(number_of(*weight_, cells[weight_->cell]));
}

void Encoder::unpack_numbers(const std::byte* packed, Scalar* features) const {
  const std::size_t bytes = numbers_.size() * sizeof(Scalar);
  if (number_features_ == std::ssize(numbers_)) {
    if (bytes > 0) std::memcpy(features, packed, bytes);
    return;
  }
  for (const Numeric& column : numbers_) {
    Scalar value = 0;
    std::memcpy(&value, packed, sizeof value);
    packed += sizeof value;
    if (column.part == DatePart::kDayOfYear) {
      put_one_hot(static_cast<Index>(value), column.features(), features);
    } else if (column.bins == 0) {
      *features = value;
    } else {
      put_bins(value, column.bins, features);
    }
    features += column.features();
  }
}

void Encoder::unpack(const std::byte* packed, Scalar* features, Scalar* labels) const {
  unpack_numbers(packed, features);
  features += number_features_;
  packed += numbers_.size() * sizeof(Scalar);
  for (const Categorical& column : categories_) {
    std::uint32_t position = 0;
    std::memcpy(&position, packed, sizeof position);
    packed += sizeof position;
    if (column.width == 0) {
      *features++ = static_cast<Scalar>(position);
    } else {
      put_one_hot(position, column.width, features);
      features += column.width;
    }
  }
  const auto label_bytes = static_cast<std::size_t>(label_columns()) * sizeof(Scalar);
  if (label_bytes > 0) std::memcpy(labels, packed, label_bytes);
}

std::vector<RowColumn> match_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<RowColumn> matched(table.names.size());
  if (matched.empty()) return matched;  // there is no record
  const bool one_label = schema.labels() == 1;
  const std::vector<std::size_t> positions = find_columns(table, schema, labels);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    if (column.kind == ColumnKind::kIgnored || (column.is_label_or_weight() && !labels)) continue;
    if (positions[i] == table.names.size()) {
      const std::string nearest = nearest_name(column.name, table.names);
      throw DataError("'{}' has no column {}, {}{}; its columns: {}", table.text.files.front().path,
                      in_quotes(column.name),
                      column.label    ? "the label"
                      : column.weight ? "the weights of its records (data.weight)"
                                      : "which the model takes",
                      nearest.empty() ? "" : fmt::format(" (did {} mean that?)", in_quotes(nearest)),
                      listed(table.names));
    }
    RowColumn& row = matched[positions[i]];
    row = row_column(column,
                     column.weight                         ? Reading::kWeight
                     : column.kind == ColumnKind::kNumeric ? Reading::kNumber
                                                           : Reading::kText,
                     i);
    const bool wants_labels = column.label && !schema.windows;  // a series may have gaps
    row.required = wants_labels && one_label;
    row.one_of = wants_labels && !one_label;
  }
  return matched;
}

std::string describe_positions(const TableText& table, const TableSchema& schema) {
  if (table.header || table.names.empty() || schema.is_nameless()) return "";
  std::vector<std::string> taken;
  for (const TableColumn& column : schema.columns) {
    if (table.names.size() == schema.columns.size() || !column.is_label_or_weight())
      taken.push_back(column.name);
  }
  return fmt::format("'{}' has no header: its {} {} taken as {}", table.text.files.front().path,
                     plural(std::ssize(taken), "column"), taken.size() == 1 ? "is" : "are", listed(taken));
}

}  // namespace lockstep
