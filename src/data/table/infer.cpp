#include "lockstep/data/table/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Different values that are counted: of texts, and of numbers, which seldom are categories.
constexpr Index kMaxTexts = 100'000;
constexpr Index kMaxNumbers = 1000;
// A column whose texts are no larger a share is one of numbers with bad records.
constexpr double kBadNumbers = 0.01;
constexpr Index kMaxOneHot = 1000;
constexpr Index kHashBuckets = 1024;
constexpr Index kFewValues = 100;

std::string example_of(const ColumnSummary& summary) {
  const std::vector<ValueCounts::Entry> texts = summary.text_counts.by_count();
  return texts.empty() ? "" : fmt::format(", such as {}", in_quotes(texts.front().text));
}

ColumnGuess guess_number(const ColumnSummary& summary) {
  ColumnGuess guess{.kind = ColumnKind::kNumeric, .remark = ""};
  if (summary.texts > 0) {
    guess.remark =
        fmt::format("{} value{} no number{}: with it as numeric, those records are bad",
                    with_commas(summary.texts), summary.texts == 1 ? " is" : "s are", example_of(summary));
  }
  return guess;
}

ColumnGuess guess_category(const ColumnSummary& summary, Index values) {
  const bool countless = summary.text_counts.overflowed() || summary.number_counts.overflowed();
  const Index distinct = summary.text_counts.distinct() + summary.number_counts.distinct();
  if (countless || (distinct > kFewValues && distinct > values / 2)) {
    return {.kind = ColumnKind::kIgnored,
            .remark = fmt::format("{} different texts, hardly one of them twice: an id or free text?",
                                  countless ? "very many" : with_commas(distinct))};
  }
  if (distinct > kMaxOneHot) {
    return {.kind = ColumnKind::kCategorical,
            .hash = kHashBuckets,
            .remark = fmt::format("{} categories: best hashed, or embedded (index)", with_commas(distinct))};
  }
  return {.kind = ColumnKind::kCategorical, .remark = ""};
}

}  // namespace

Scan look_at_columns(const TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers) {
  std::vector<RowColumn> rows;
  std::vector<ColumnWants> wants;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool looks = all || columns[i].kind == ColumnKind::kUnknown;
    rows.push_back({.reading = looks ? Reading::kEither : Reading::kSkip, .cell = static_cast<Index>(i)});
    wants.push_back({.max_texts = looks ? kMaxTexts : 0, .max_numbers = looks ? kMaxNumbers : 0});
  }
  return scan_table({.table = table,
                     .columns = rows,
                     .wants = wants,
                     .missing = missing,
                     .bad = {.action = OnBadRecord::kSkip}},
                    peers);
}

ColumnGuess guess_column(const ColumnSummary& summary, bool label) {
  const Index values = summary.texts + summary.numbers.count;
  if (values == 0) return {.kind = ColumnKind::kIgnored, .remark = "it has no values at all"};
  const bool number = static_cast<double>(summary.texts) <= kBadNumbers * static_cast<double>(values);
  const bool constant = !summary.text_counts.overflowed() && !summary.number_counts.overflowed() &&
                        summary.text_counts.distinct() + summary.number_counts.distinct() == 1;
  ColumnGuess guess = number ? guess_number(summary) : guess_category(summary, values);
  if (constant && (label || summary.missing == 0)) {
    guess.remark = label ? "it is constant: there is nothing to learn" : "it is constant";
    if (!label) guess.kind = ColumnKind::kIgnored;
  }
  if (label && guess.kind == ColumnKind::kIgnored) guess.kind = ColumnKind::kCategorical;
  return guess;
}

void infer_kinds(const TableText& table, std::vector<TableColumn>& columns,
                 const std::vector<std::string>& missing, PeerGroup& peers,
                 std::vector<std::string>& remarks) {
  const auto unknown = [](const TableColumn& column) { return column.kind == ColumnKind::kUnknown; };
  if (std::ranges::none_of(columns, unknown)) return;
  const Scan scan = look_at_columns(table, columns, false, missing, peers);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    TableColumn& column = columns[i];
    if (!unknown(column)) continue;
    const ColumnGuess guess = guess_column(scan.columns[i], column.label);
    column.kind = guess.kind;
    if (guess.hash > 0 && !column.label && column.encoding == Encoding::kOneHot) {
      column.encoding = Encoding::kHash;
      column.buckets = guess.hash;
    }
    if (guess.remark.empty()) continue;
    remarks.push_back(fmt::format("column {}{}: {}", in_quotes(column.name),
                                  guess.kind == ColumnKind::kIgnored ? " is ignored" : "", guess.remark));
  }
}

}  // namespace lockstep
