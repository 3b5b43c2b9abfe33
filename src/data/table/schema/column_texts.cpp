#include "lockstep/data/table/schema/column_texts.h"

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {

std::vector<Index> ColumnTexts::find(const TableText& table) const {
  std::vector<Index> positions;
  for (Index i = 0; i < std::ssize(table.names); ++i) {
    if (std::ranges::count(wanted_, at(table.names, i)) > 0) positions.push_back(i);
  }
  return positions;
}

void ColumnTexts::take(const TableText& table, const TableOptions& options, std::string name, Scan& scan) {
  name_ = std::move(name);
  names_ = table.names;
  missing_ = options.missing_values;
  skips_ = options.on_bad_record == OnBadRecord::kSkip;
  separator_ = table.text.dialect.separator;
  const std::vector<TableColumn> declared = declare_columns(options, table.names);
  for (const Index position : find(table)) found_.push_back(at(declared, position));
  texts_ = std::move(scan.texts);
}

ColumnValues ColumnTexts::values(const std::string& column, const std::string& setting) {
  const auto found = std::ranges::find(found_, column, &TableColumn::name);
  if (found == found_.end()) {
    throw ConfigError("{}: there is no column {} in '{}'{}", setting, in_quotes(column), name_,
                      suggestion(column, names_));
  }
  ColumnValues values{.column = *found, .missing = missing_, .skipped = skipped_, .separator = separator_};
  std::vector<std::string>& all = at(texts_, found - found_.begin());
  auto next = skipped_.begin();
  if (!skips_ && std::ranges::count(wanted_, column) == 1) values.texts = std::exchange(all, {});
  for (Index position = 0; position < std::ssize(all); ++position) {
    if (next != skipped_.end() && *next == position) {
      ++next;
    } else {
      values.texts.push_back(at(all, position));
    }
  }
  const auto empty = std::ranges::find(values.texts, std::string());
  if (empty == values.texts.end()) return values;
  throw ConfigError("{}: column {} is empty in record {} (counted from 0), expected a value in each", setting,
                    in_quotes(column), with_commas(values.position(empty - values.texts.begin())));
}

}  // namespace lockstep
