#include "lockstep/data/table/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/number.h"

namespace lockstep {
namespace {

std::string location(const TableText& table, const TextChunk& chunk, Index line) {
  return fmt::format("'{}', line {}", table.text.files[chunk.file].path, with_commas(line));
}

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

// The character that a record has most of, outside quotes.
char guess_separator(const std::string& path, std::string_view record) {
  if (ends_with_any(path, {".tsv", ".tab", ".tsv.gz", ".tab.gz"})) return '\t';
  std::map<char, Index> counts;
  bool inside = false;
  for (const char c : record) {
    inside ^= c == '"';
    if (!inside) ++counts[c];
  }
  constexpr std::string_view kSeparators = ",\t;|";
  return *std::ranges::max_element(kSeparators, {}, [&](char c) { return counts[c]; });
}

char separator_of(const TableOptions& options, const std::string& path, std::string_view record) {
  if (options.separator == "auto") return guess_separator(path, record);
  if (options.separator == "tab") return '\t';
  return options.separator.front();
}

std::string shown_separator(char separator) {
  return separator == '\t' ? "a tab" : fmt::format("'{}'", separator);
}

// A record in which the separator of the config does not occur, but another one does, is separated by that: a
// model that learnt from one file can be given another.
void take_other_separator(Dialect& dialect, const std::string& path, std::string_view record,
                          std::vector<std::string>& warnings) {
  const char guess = guess_separator(path, record);
  const bool fits = record.find(dialect.separator) != std::string_view::npos;
  if (fits || record.find(guess) == std::string_view::npos) return;
  warnings.push_back(fmt::format("'{}' is separated by {}, not by {} as data.separator says", path,
                                 shown_separator(guess), shown_separator(dialect.separator)));
  dialect.separator = guess;
}

std::vector<std::string> split(const Dialect& dialect, std::string_view record) {
  FieldCursor cursor(dialect);
  cursor.start(record);
  std::vector<std::string> fields;
  while (!cursor.done()) fields.emplace_back(cursor.take_text());
  return fields;
}

bool is_header(Header header, const std::vector<std::string>& fields) {
  if (header != Header::kAuto) return header == Header::kYes;
  return std::ranges::none_of(fields,
                              [](const std::string& field) { return parse_number(field).has_value(); });
}

// Makes names distinct: none is empty or used twice. `renamed` gets a warning for each that changes.
std::vector<std::string> name_columns(const std::vector<std::string>& fields, bool header,
                                      std::vector<std::string>& renamed) {
  std::vector<std::string> names;
  std::unordered_map<std::string, Index> used;  // the last number that was tried behind a name
  for (const std::string& field : fields) {
    const std::string wanted = header && !field.empty() ? field : fmt::format("c{}", names.size() + 1);
    std::string name = wanted;
    while (!used.try_emplace(name, 1).second) name = fmt::format("{}.{}", wanted, ++used[wanted]);
    if (name != wanted) {
      renamed.push_back(fmt::format("the header names two columns {}: column {} is called {} here",
                                    in_quotes(wanted), names.size() + 1, in_quotes(name)));
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Finds out from the record behind the header whether each ends with a separator that the header does not
// have.
void look_at_end(TableText& table, std::string_view record) {
  try {
    const std::vector<std::string> fields = split(table.dialect, record);
    table.dialect.ends_with_separator = fields.size() == table.names.size() + 1 && fields.back().empty();
  } catch (const BadRecord&) {
    return;  // whoever reads the record reports it
  }
  if (!table.dialect.ends_with_separator) return;
  table.warnings.push_back(fmt::format(
      "the records of '{}' end with a separator, its header does not: what would stand behind it is "
      "left out",
      table.text.files.front().path));
}

// Reads the first record, which all else follows from.
void read_first(TableText& table, const TableOptions& options) {
  TextReader reader(table.text);
  for (const TextChunk& chunk : table.text.chunks) {
    const std::string_view text = reader.read(chunk);
    RecordLines lines(text, options.quotes, reader.first_line());
    std::string_view record;
    if (!lines.next(record)) continue;
    const std::string& path = table.text.files[chunk.file].path;
    table.dialect = {.separator = separator_of(options, path, record), .quotes = options.quotes};
    take_other_separator(table.dialect, path, record, table.warnings);
    try {
      const std::vector<std::string> fields = split(table.dialect, record);
      table.header = is_header(options.header, fields);
      table.names = name_columns(fields, table.header, table.warnings);
      if (table.header) table.header_text = record;
      const auto bad = std::ranges::find_if_not(table.names, is_text);
      if (bad != table.names.end()) {
        throw BadRecord{bad - table.names.begin(), in_quotes(*bad), kExpectedText};
      }
    } catch (const BadRecord& bad) {
      throw DataError(fmt::format("{}, field {}: found {}, expected {}", location(table, chunk, lines.line()),
                                  bad.column + 1, bad.found, bad.expected));
    }
    std::string_view second;
    if (table.header && lines.next(second)) look_at_end(table, second);
    return;
  }
  throw DataError(
      fmt::format("'{}' holds no records: all its lines are blank", table.text.files.front().path));
}

}  // namespace

TableText open_table_text(std::span<const std::string> paths, const TableOptions& options, PeerGroup& peers) {
  TableText table;
  table.text = index_text(
      paths, {.bytes = options.chunk_kib * 1024, .quotes = options.quotes, .encoding = options.encoding},
      peers);
  peers.agree([&] { read_first(table, options); });
  return table;
}

TableReader::TableReader(const TableText& table, const std::vector<RowColumn>& columns, Index cells,
                         const std::vector<std::string>& missing)
    : table_(table),
      columns_(columns),
      reader_(table.text),
      parser_(table.dialect, columns, cells, missing) {}

RecordLines TableReader::start(const TextChunk& chunk) {
  const std::string_view text = reader_.read(chunk);
  // Without quotes in it, the text is cut faster.
  const bool quotes = table_.dialect.quotes && text.find('"') != std::string_view::npos;
  RecordLines lines(text, quotes, reader_.first_line());
  std::string_view record;
  if (table_.header && chunk.first_of_file && lines.next(record)) check_header(record, chunk);
  return lines;
}

bool TableReader::next(RecordLines& lines, const TextChunk& chunk, std::string_view& record) const {
  if (!lines.next(record)) return false;
  if (lines.unclosed()) {
    throw DataError(
        fmt::format("{}: a quote is opened in this record and never closed, expected one that closes it "
                    "before the end of the file (data.quotes = false takes quotes as characters)",
                    location(table_, chunk, lines.line())));
  }
  return true;
}

// All files of a table have the header of the first.
void TableReader::check_header(std::string_view record, const TextChunk& chunk) const {
  if (chunk.file == 0) return;
  try {
    std::vector<std::string> renamed;
    if (name_columns(split(table_.dialect, record), true, renamed) == table_.names) return;
  } catch (const BadRecord&) {
    // Not the header of the first file, which could be split.
  }
  throw DataError(fmt::format(
      "'{}' has another header than '{}': found {}, expected the same {} columns in the same order",
      table_.text.files[chunk.file].path, table_.text.files.front().path, in_quotes(record),
      table_.names.size()));
}

void TableReader::throw_repeated_header() {
  throw BadRecord{-1, "the header once more", "a record (were files put together with their headers?)"};
}

std::string TableReader::describe(const BadRecord& bad, bool parsed, const TextChunk& chunk,
                                  Index line) const {
  Index column = bad.column;
  if (parsed) {
    const auto found = std::ranges::find_if(columns_, [&](const RowColumn& each) {
      return each.reading != Reading::kSkip && each.cell == bad.column;
    });
    column = found - columns_.begin();
  }
  const std::string where =
      column < 0 ? "" : fmt::format(", column {} ({})", column + 1, in_quotes(at(table_.names, column)));
  return fmt::format("{}{}: found {}, expected {}", location(table_, chunk, line), where, bad.found,
                     bad.expected);
}

}  // namespace lockstep
