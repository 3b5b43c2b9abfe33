#include "lockstep/data/table/text/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "lockstep/base/text.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr std::string_view kSeparators = ",\t;|";
constexpr Index kMaxBytes = Index{64} << 20;
constexpr Index kMaxLooked = 100;  // lines that show how many fields the table has

bool is_tab_file(const std::string& path) {
  constexpr std::array kEnds{".tsv", ".tab", ".tsv.gz", ".tab.gz"};
  return std::ranges::any_of(kEnds, [&path](const char* end) { return ends_as(path, end); });
}

std::string shown_separator(char separator) {
  return separator == '\t' ? "a tab" : fmt::format("'{}'", separator);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

// The count of 2 or more that most of the lines have, and how many have it.
std::pair<Index, Index> most_common(const std::vector<Index>& counts) {
  std::map<Index, Index> lines;
  for (const Index count : counts) {
    if (count > 1) ++lines[count];
  }
  std::pair<Index, Index> best{0, 0};
  for (const auto& [count, times] : lines) {
    if (times >= best.second) best = {count, times};
  }
  return best;
}

// Whether this may be a record of a table without a header, labels and weights or not: numbers stand where
// the schema has them. Errors: BadRecord.
bool is_record(const TableSchema& schema, const Dialect& dialect, std::string_view record) {
  const std::size_t fields = split_record(dialect, record).size();
  const bool all = fields == schema.columns.size();
  std::vector<RowColumn> columns;
  for (const TableColumn& column : schema.columns) {
    if (column.is_label_or_weight() && !all) continue;
    const bool number = column.kind == ColumnKind::kNumeric;
    columns.push_back(row_column(column, number ? Reading::kNumber : Reading::kText, columns.size()));
  }
  if (fields != columns.size()) return false;
  RowParser(dialect, columns, std::ssize(columns), schema.missing_values).parse(record);
  return true;
}

bool has_columns(const TableSchema& schema, const Dialect& dialect, std::string_view record) {
  if (schema.is_nameless()) return is_record(schema, dialect, record);
  const std::vector<std::string> fields = split_record(dialect, record);
  std::vector<std::string> renamed;
  const std::vector<std::string> names = name_columns(fields, true, renamed);
  const std::unordered_set<std::string_view> known(names.begin(), names.end());
  return std::ranges::all_of(schema.columns, [&known](const TableColumn& column) {
    return !column.is_feature() || known.contains(column.name);
  });
}

}  // namespace

bool is_header(const std::vector<std::string>& fields, const TableOptions& options,
               const TableSchema* known) {
  const auto stands = [&fields](const std::string& name) { return std::ranges::count(fields, name) > 0; };
  const auto fits = [&](const TableColumn& column) { return !column.is_feature() || stands(column.name); };
  if (known != nullptr && !known->is_nameless() && std::ranges::all_of(known->columns, fits)) return true;
  if (!options.label.empty() && std::ranges::all_of(options.label, stands)) return true;
  return std::ranges::none_of(fields, [](const std::string& each) { return parse_number(each).has_value(); });
}

std::vector<std::string> split_record(const Dialect& dialect, std::string_view record) {
  FieldCursor cursor(dialect);
  cursor.start(record);
  std::vector<std::string> fields;
  while (!cursor.done()) fields.emplace_back(cursor.take_text());
  return fields;
}

std::vector<std::string> name_columns(const std::vector<std::string>& fields, bool header,
                                      std::vector<std::string>& renamed) {
  std::vector<std::string> wanted;
  for (const std::string& field : fields) {
    std::string& name = wanted.emplace_back(field);
    if (!header || field.empty()) name = fmt::format("c{}", wanted.size());
    // A line break is one character, however the file ends its lines.
    for (std::size_t at = 0; (at = name.find("\r\n", at)) != std::string::npos;) name.erase(at, 1);
  }
  std::vector<std::string> names = distinct_names(wanted);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted[i]) continue;
    renamed.push_back(fmt::format("the header names two columns {}: column {} is called {} here",
                                  in_quotes(wanted[i]), i + 1, in_quotes(names[i])));
  }
  return names;
}

FirstLines::FirstLines(const TextFile& file, const TableOptions& options)
    : path_(file.path),
      options_(options),
      text_(first_text(file, options.skip_lines + 2, kMaxBytes)),
      lines_(split_lines(text_)) {}

// The first record behind so many lines, or as much of it as is at hand.
std::string_view FirstLines::record(Index skipped) const {
  std::size_t line = static_cast<std::size_t>(skipped);
  while (line < lines_.size() && lines_[line].empty()) ++line;
  if (line >= lines_.size()) return {};
  const std::string_view rest =
      std::string_view(text_).substr(static_cast<std::size_t>(lines_[line].data() - text_.data()));
  const Dialect rules{.separator = Dialect::kAnySeparator, .quotes = options_.quotes};
  RecordLines records(rest, rules, 1);
  std::string_view record;
  records.next(record);
  return record;
}

// The character that a record has most of, outside of quotes.
char FirstLines::guess_separator(std::string_view record) const {
  if (is_tab_file(path_)) return '\t';
  std::map<char, Index> counts;
  bool inside = false;
  char before = kSeparators.front();  // the last character that is no blank
  for (const char c : record) {
    const bool opens = kSeparators.find(before) != std::string_view::npos;
    if (options_.quotes && c == '"' && (inside || opens)) inside = !inside;
    if (!inside) ++counts[c];
    if (c != ' ') before = c;
  }
  return *std::ranges::max_element(kSeparators, {}, [&](char c) { return counts[c]; });
}

Dialect FirstLines::dialect(Index skipped, std::vector<std::string>& warnings) const {
  const std::string_view first = record(skipped);
  const char guess = guess_separator(first);
  Dialect dialect{.separator = guess, .quotes = options_.quotes};
  if (options_.separator == "auto") return dialect;
  const char given = options_.separator == "tab" ? '\t' : options_.separator.front();
  if (first.find(given) != std::string_view::npos || first.find(guess) == std::string_view::npos) {
    dialect.separator = given;
    return dialect;
  }
  warnings.push_back(fmt::format("'{}' is separated by {}, not by {} as data.separator says", path_,
                                 shown_separator(guess), shown_separator(given)));
  return dialect;
}

std::optional<Index> FirstLines::lines_above(const TableSchema& schema, Index most) const {
  for (Index skipped = 0; skipped <= std::min(most, std::ssize(lines_) - 1); ++skipped) {
    std::vector<std::string> warnings;
    if (at(lines_, skipped).empty()) continue;
    try {
      if (has_columns(schema, dialect(skipped, warnings), record(skipped))) return skipped;
    } catch (const BadRecord&) {
      continue;  // no record of the table
    }
  }
  return std::nullopt;
}

// The fields of the record that each line begins; 0 for a line that begins none, or one with bad quotes: a
// blank one, or one of a quoted field.
std::vector<Index> FirstLines::count_fields(char separator) const {
  std::vector<Index> counts;
  const Dialect dialect{.separator = separator, .quotes = options_.quotes};
  // The last line may be cut off.
  RecordLines records(std::string_view(text_).substr(0, text_.rfind('\n') + 1), dialect, 1);
  for (std::string_view record; records.next(record) && records.line() <= kMaxLooked;) {
    counts.resize(static_cast<std::size_t>(records.line()));
    try {
      // An empty field behind a separator at the end of the line is none.
      const std::vector<std::string> fields = split_record(dialect, record);
      counts.back() = std::ssize(fields) - (fields.size() > 1 && fields.back().empty() ? 1 : 0);
    } catch (const BadRecord&) {
      continue;
    }
  }
  return counts;
}

std::string FirstLines::Title::describe() const {
  const bool one = lines == 1;
  return fmt::format(
      "the first {}, {}{}, {} not look like the table below, whose lines have {} fields: data.skip_lines = "
      "{} "
      "leaves {} out",
      one ? "line" : plural(lines, "line"), one ? "" : "such as ", in_quotes(example), one ? "does" : "do",
      fields, lines, one ? "it" : "them");
}

std::string FirstLines::describe_header() const {
  constexpr std::size_t kMinRows = 4;
  std::vector<std::string> warnings;
  const Dialect rules = dialect(0, warnings);
  RecordLines records(std::string_view(text_).substr(0, text_.rfind('\n') + 1), rules, 1);
  std::vector<std::vector<std::string>> rows;
  try {
    for (std::string_view each; records.next(each);) rows.push_back(split_record(rules, each));
  } catch (const BadRecord&) {
    return "";  // whoever reads the records reports it
  }
  if (rows.size() < kMinRows || options_.header == Header::kNo || !is_header(rows[0], options_, nullptr))
    return "";
  const std::size_t names = rows[0].size();
  const std::size_t fields = rows[1].size();
  const bool is_alike = std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
    return row.size() == fields && (fields < names || !row.back().empty());  // else a separator ends the line
  });
  if (!is_alike || names < 2 || (fields != names + 1 && fields + 1 != names)) return "";
  return fmt::format("the header has {} names, and each record below it {} fields: {}", names, fields,
                     fields < names ? "take out the name of the column that is not there"
                                    : "name every column (in R, row.names = FALSE leaves its numbers out)");
}

FirstLines::Title FirstLines::title() const {
  constexpr Index kMinLines = 3;
  constexpr double kMost = 0.9;
  std::string separators(kSeparators);
  if (is_tab_file(path_)) separators = "\t";
  if (options_.separator != "auto") separators = options_.separator == "tab" ? "\t" : options_.separator;
  std::vector<Index> counts;
  std::pair<Index, Index> best{0, 0};  // fields, and the lines that have so many
  for (const char separator : separators) {
    const std::vector<Index> found = count_fields(separator);
    // Names above records whose last field may be empty.
    const Index names = found.empty() ? 0 : found.front();
    const auto alike = std::ranges::count_if(
        found, [names](Index count) { return names > 2 && (count == names || count + 1 == names); });
    if (alike >= kMinLines && static_cast<double>(alike) >= kMost * static_cast<double>(found.size()))
      return {};
    const auto common = most_common(found);
    if (std::pair(common.second, common.first) <= std::pair(best.second, best.first)) continue;
    best = common;
    counts = found;
  }
  const auto first = std::ranges::find(counts, best.first);
  const Index lines = first - counts.begin();
  if (best.second < kMinLines || lines == 0) return {};
  const auto behind = std::count_if(first, counts.end(), [](Index count) { return count > 0; });
  if (static_cast<double>(best.second) < kMost * static_cast<double>(behind)) return {};
  if (std::any_of(counts.begin(), first, [&](Index count) { return count > best.first; })) return {};
  // The header of R's write.table has no name for the numbers of the rows.
  if (lines == 1 && counts.front() + 1 == best.first && best.first > 2) return {};
  const auto shown = std::ranges::find_if_not(lines_, &std::string_view::empty);
  return {.lines = lines, .fields = best.first, .example = std::string(*shown)};
}

}  // namespace lockstep
