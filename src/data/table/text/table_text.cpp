#include "lockstep/data/table/text/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/message.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

// Finds out from the record behind the header whether each ends with a separator that the header does not
// have.
void look_at_end(TableText& table, std::string_view record) {
  try {
    const std::vector<std::string> fields = split_record(table.text.dialect, record);
    table.text.dialect.ends_with_separator = fields.size() == table.names.size() + 1 && fields.back().empty();
  } catch (const BadRecord&) {
    return;  // whoever reads the record reports it
  }
  if (!table.text.dialect.ends_with_separator) return;
  table.warnings.push_back(fmt::format(
      "the records of '{}' end with a separator, its header does not: what would stand behind it is "
      "left out",
      table.text.files.front().path));
}

// The record of a file that begins at `from`, without its line end, and the position behind it; blank lines
// are passed over. Nothing if there is none.
std::optional<std::pair<std::string, Index>> read_record(TextWindow& window, Index from,
                                                         const Dialect& rules) {
  bool whole = false;
  for (;;) {
    const std::string_view text = window.text({from, window.range().end});
    const auto end =
        find_record_end(text, rules, false, whole || std::ssize(text) > TextWindow::kMaxRecordBytes);
    if (text.empty() && whole) return std::nullopt;
    if (!end) {
      whole = !window.extend(TextWindow::kLookAhead);
      continue;
    }
    RecordLines lines(text.substr(0, static_cast<std::size_t>(*end)), rules, 1);
    std::string_view record;
    if (lines.next(record)) return std::pair(std::string(record), from + *end);
    from += *end;
  }
}

// Takes the names from the first record, which all else follows from. Errors: DataError if they are none.
void take_first(TableText& table, const TableOptions& options, const TextFile& file, Index line,
                const std::string& record, const TableSchema* known) {
  try {
    const std::vector<std::string> fields = split_record(table.text.dialect, record);
    table.header =
        options.header == Header::kAuto ? is_header(fields, options, known) : options.header == Header::kYes;
    constexpr std::size_t kMaxColumns = 100'000;
    error_if<DataError>(fields.size() > kMaxColumns,
                        "'{}' has {} columns, expected at most {}: is it a table with its "
                        "records one below the other?",
                        table.text.files.front().path, with_commas(std::ssize(fields)),
                        with_commas(static_cast<Index>(kMaxColumns)));
    table.names = name_columns(fields, table.header, table.warnings);
    if (table.header) table.header_text = record;
    const auto bad = std::ranges::find_if_not(table.names, is_text);
    if (bad != table.names.end()) throw BadRecord{bad - table.names.begin(), in_quotes(*bad), kExpectedText};
  } catch (const BadRecord& bad) {
    throw DataError("'{}', line {}, field {}: found {}, expected {}", file.path, with_commas(line),
                    bad.column + 1, bad.found, bad.expected);
  }
}

// Reads the first record of the table, and the one behind it.
void read_first(TableText& table, const TableOptions& options, const TableSchema* known) {
  for (const TextFile& file : table.text.files) {
    if (file.file_bytes == 0) continue;
    const auto held = file.window ? file.window : std::make_shared<TextWindow>(file);
    TextWindow& window = *held;
    window.hold({file.begin, file.begin + 1});
    const auto record = read_record(window, file.begin, table.text.dialect);
    if (!record) continue;
    const std::string_view before = window.text({file.begin, record->second});
    const Index lines = std::ranges::count(before, '\n') + (before.ends_with('\n') ? 0 : 1);
    const Index own = std::ranges::count(record->first, '\n');
    take_first(table, options, file, file.skipped_lines + lines - own, record->first, known);
    const auto second = read_record(window, record->second, table.text.dialect);
    if (table.header && second) look_at_end(table, second->first);
    return;
  }
  if (known != nullptr) return;
  throw DataError("'{}' holds no records: all its lines are blank", table.text.files.front().path);
}

// As data.skip_lines says; but a file that a model reads may come without the lines above its table.
Index lines_to_skip(const FirstLines& first, const std::string& path, const TableOptions& options,
                    const TableSchema* known, std::vector<std::string>& warnings) {
  const std::optional<Index> above =
      known == nullptr ? std::nullopt : first.lines_above(*known, options.skip_lines);
  if (above && *above != options.skip_lines) {
    warnings.push_back(fmt::format("'{}' has {} above its table: data.skip_lines = {} leaves out no more",
                                   path, plural(*above, "line"), options.skip_lines));
  }
  if (above || options.skip_lines > 0) return above.value_or(options.skip_lines);
  if (const std::string odd = first.describe_header(); !odd.empty()) throw DataError("'{}': {}", path, odd);
  const FirstLines::Title title = first.title();
  if (title.lines == 0) return 0;
  throw DataError("'{}': {}", path, title.describe());
}

// All that one rank finds out by looking at the files.
TableText look_at_table(std::span<const std::string> paths, const TableOptions& options,
                        const TableSchema* known) {
  TableText table{.text = {.dialect = {.quotes = options.quotes}}};
  const bool may_be_empty = known != nullptr;
  std::optional<Index> skipped;
  for (const std::string& path : paths) {
    TextFile& file = table.text.files.emplace_back(look_at_text_file(
        path, {.quotes = options.quotes, .encoding = options.encoding, .may_be_empty = may_be_empty}));
    if (!skipped && (file.file_bytes > 0 || table.text.files.size() == paths.size())) {
      const FirstLines first(file, options);
      skipped = lines_to_skip(first, path, options, known, table.warnings);
      table.text.dialect = first.dialect(*skipped, table.warnings);
    }
    skip_lines(file, skipped.value_or(0));
    if (table.text.files.size() > kOpenWindows) file.window.reset();
  }
  const auto old = std::ranges::find_if(table.text.files, &TextFile::old_line_ends);
  if (old != table.text.files.end()) {
    table.warnings.push_back(fmt::format(
        "the lines of '{}' end with a carriage return alone, as old Macs wrote them: read like others",
        old->path));
  }
  read_first(table, options, known);
  return table;
}

}  // namespace

std::vector<std::string> distinct_names(std::span<const std::string> wanted) {
  std::vector<std::string> names;
  std::unordered_map<std::string, Index> used;  // the last number that was tried behind a name
  for (const std::string& each : wanted) {
    std::string name = each;
    while (!used.try_emplace(name, 1).second) name = fmt::format("{}.{}", each, ++used[each]);
    names.push_back(std::move(name));
  }
  return names;
}

TableText open_table_text(std::span<const std::string> paths, const TableOptions& options, PeerGroup& peers,
                          const TableSchema* known) {
  auto table = from_first_rank<TableText>(peers, [&] { return look_at_table(paths, options, known); });
  table.text.chunk_bytes = options.chunk_kib * 1024;
  return table;
}

TableReader::TableReader(const TableText& table, const std::vector<RowColumn>& columns, Index cells,
                         const std::vector<std::string>& missing)
    : table_(table),
      columns_(columns),
      reader_(table.text),
      parser_(table.text.dialect, columns, cells, missing) {}

RecordLines TableReader::start(const TextChunk& chunk) {
  const std::string_view text = reader_.read(chunk);
  // Without quotes in it, the text is cut faster.
  Dialect rules = table_.text.dialect;
  rules.quotes = rules.quotes && text.find('"') != std::string_view::npos;
  RecordLines lines(text, rules, reader_.first_line());
  std::string_view record;
  if (table_.header && chunk.first_of_file && lines.next(record)) check_header(record, chunk);
  return lines;
}

// All files of a table have the header of the first.
void TableReader::check_header(std::string_view record, const TextChunk& chunk) const {
  if (chunk.file == 0) return;
  try {
    std::vector<std::string> renamed;
    if (name_columns(split_record(table_.text.dialect, record), true, renamed) == table_.names) return;
  } catch (const BadRecord&) {
    // Not the header of the first file, which could be split.
  }
  throw DataError(
      "'{}' has another header than '{}': found {}, expected the same {} columns in the same order",
      table_.text.files[chunk.file].path, table_.text.files.front().path, in_quotes(record),
      table_.names.size());
}

std::string TableReader::describe(const BadRecord& bad, bool parsed, const TextChunk& chunk,
                                  const RecordLines& lines) const {
  Index column = bad.column;
  if (parsed) {
    const auto found = std::ranges::find_if(columns_, [&](const RowColumn& each) {
      return each.reading != Reading::kSkip && each.cell == bad.column;
    });
    column = found - columns_.begin();
  }
  std::string where;
  if (column >= 0) where = fmt::format(", column {}", column + 1);
  // A field behind the last column has no name.
  if (column >= 0 && column < std::ssize(table_.names)) {
    where += fmt::format(" ({})", in_quotes(at(table_.names, column)));
  }
  const std::string more =
      lines.last_line() == lines.line() ? "" : fmt::format(" to {}", with_commas(lines.last_line()));
  return fmt::format("'{}', line {}{}{}: found {}, expected {}", table_.text.files[chunk.file].path,
                     with_commas(lines.line()), more, where, bad.found, bad.expected);
}

}  // namespace lockstep
