#include "lockstep/data/table/schema/kept_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {

std::vector<std::string> parse_column_names(std::string_view flag, const std::string& text) {
  std::vector<std::string> names;
  const auto refuse = [flag](std::string_view found, std::string_view expected) {
    throw ConfigError("{}: found {}, expected {}", flag, found, expected);
  };
  FieldCursor cursor{Dialect{}};
  cursor.start(text);
  while (!cursor.done()) {
    try {
      names.emplace_back(cursor.take_text());
    } catch (const BadRecord& bad) {
      refuse(bad.found, bad.expected);
    }
    const std::string& name = names.back();
    if (name.empty()) refuse(in_quotes(text), "names of columns with commas between them");
    if (std::ranges::count(names, name) > 1)
      refuse(fmt::format("{} twice", in_quotes(name)), "each column once");
  }
  if (names.empty()) refuse("nothing", "names of columns with commas between them");
  return names;
}

KeptColumns::KeptColumns(const TableText& table, std::vector<std::string> names)
    : names_(std::move(names)), table_(table), columns_(table_.names.size()) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (table_.names.empty()) break;  // there is no record
    const auto found = std::ranges::find(table_.names, names_[i]);
    if (found == table_.names.end()) {
      throw ConfigError("--keep names the column {}, which '{}' does not have{}; it has: {}",
                        in_quotes(names_[i]), table_.text.files.front().path,
                        suggestion(names_[i], table_.names), listed(table_.names));
    }
    columns_[static_cast<std::size_t>(found - table_.names.begin())] = {.reading = Reading::kText,
                                                                        .cell = static_cast<Index>(i)};
  }
  static const std::vector<std::string> kNothingIsMissing;
  reader_.emplace(table_, columns_, std::ssize(names_), kNothingIsMissing);
}

std::span<const std::string> KeptColumns::next() {
  while (next_ == cells_.size()) read_chunk();
  const std::span<const std::string> record = std::span(cells_).subspan(next_, names_.size());
  next_ += names_.size();
  return record;
}

void KeptColumns::read_chunk() {
  if (chunk_ == table_.text.chunks.size()) {
    throw DataError(
        "'{}' changed since it was opened: it has fewer records now; files must stay as they are until the "
        "predictions are written",
        table_.text.files.back().path);
  }
  cells_.clear();
  next_ = 0;
  reader_->for_each_record(
      table_.text.chunks[chunk_++],
      [this](std::span<const Cell> record) {
        for (const Cell& cell : record) cells_.emplace_back(cell.text);
      },
      [this](const std::string&) { cells_.resize(cells_.size() + names_.size()); });
}

}  // namespace lockstep
