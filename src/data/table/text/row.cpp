#include "lockstep/data/table/text/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

void check_size(double number, Index position) {
  if (std::abs(number) <= double{std::numeric_limits<Scalar>::max()}) return;
  throw BadRecord{position, fmt::format("'{:g}'", number), "a number that single precision can hold"};
}

std::uint64_t bit_of_size(std::size_t size) {
  constexpr std::size_t kLast = 63;
  return std::uint64_t{1} << std::min(size, kLast);
}

bool stands_for_missing(double number, const RowColumn& column) {
  return std::ranges::find(column.missing_numbers, number) != column.missing_numbers.end();
}

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, static_cast<std::size_t>(end - begin)));
}

bool separates(char c, const Dialect& rules) {
  if (rules.separator != Dialect::kAnySeparator) return c == rules.separator;
  return c == ',' || c == '\t' || c == ';' || c == '|';
}

// If blanks separate fields, none is around a field.
bool is_filler(char c, const Dialect& rules) {
  return is_blank(c) && !separates(c, rules);
}

bool starts_field(const char* begin, const char* quote, const Dialect& rules) {
  while (quote != begin && is_filler(quote[-1], rules)) --quote;
  return quote == begin || separates(quote[-1], rules);
}

// `at`: behind a quote of a quoted field.
bool ends_field(const char* at, const char* end, const Dialect& rules) {
  while (at != end && is_filler(*at, rules)) ++at;
  return at == end || separates(*at, rules);
}

// The first quote in a quoted field that is not doubled; null for none.
const char* find_closing(const char* at, const char* end) {
  while (const char* quote = find(at, end, '"')) {
    if (quote + 1 == end || quote[1] != '"') return quote;
    at = quote + 2;
  }
  return nullptr;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The automaton of quotes, a line at a time. `inside`: a quoted field is open where the line begins.
Quotes quotes_behind(std::string_view line, const Dialect& rules, bool inside) {
  line = without_line_end(line);
  const char* at = line.data();
  const char* const end = at + line.size();
  Quotes open = inside ? Quotes::kStillOpen : Quotes::kOpened;  // while a field is
  for (;;) {
    while (!inside) {
      const char* quote = find(at, end, '"');
      if (quote == nullptr) return Quotes::kOutside;
      inside = starts_field(line.data(), quote, rules);
      at = quote + 1;
    }
    const char* closing = find_closing(at, end);
    if (closing == nullptr) return open;
    // Anything else behind a closing quote makes the record bad, and it ends with its line.
    if (!ends_field(closing + 1, end, rules))
      return open == Quotes::kStillOpen ? Quotes::kNeverClosed : Quotes::kOutside;
    at = closing + 1;
    inside = false;
    open = Quotes::kOpened;
  }
}

// The quotes behind some lines and one more.
Quotes one_line_on(Quotes before, std::string_view line, const Dialect& rules) {
  if (before == Quotes::kNeverClosed) return before;
  const Quotes behind = quotes_behind(line, rules, before != Quotes::kOutside);
  if (before != Quotes::kOpened) return behind;
  if (behind == Quotes::kNeverClosed) return quotes_behind(line, rules, false);
  return behind == Quotes::kStillOpen ? Quotes::kOpened : behind;
}

}  // namespace

bool read_value(std::string_view text, const RowColumn& column, Cell& cell) {
  if (column.date) {
    const auto date = read_date(text, column.date->form, column.date->before.value_or(kShortYearsBefore));
    if (!date) return false;
    cell.number = date->days;
    cell.short_year = date->short_year;
    return true;
  }
  const auto number = column.notation ? parse_number(text, *column.notation) : parse_number(text);
  if (number) cell.number = *number;
  return number.has_value();
}

RowColumn row_column(const TableColumn& column, Reading reading, std::size_t cell) {
  RowColumn row{.reading = reading,
                .cell = static_cast<Index>(cell),
                .notation = column.notation,
                .date = column.date,
                .missing = column.missing_values,
                .fold_case = column.fold_case};
  for (const std::string& text : column.missing_values) {
    Cell read;
    if (read_value(text, row, read)) row.missing_numbers.push_back(read.number);
  }
  return row;
}

std::string fold_case(std::string_view text) {
  std::string folded;
  bool blank = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto before = folded.empty() ? 0 : static_cast<unsigned char>(folded.back());
    if (is_blank(c)) {
      blank = !folded.empty();
      continue;
    }
    if (blank) folded += ' ';
    blank = false;
    // The second byte of a capital letter: U+00C0 to U+00DE, U+0391 to U+03A9, U+0410 to U+042F.
    const bool latin = before == 0xc3 && byte >= 0x80 && byte <= 0x9e && byte != 0x97;
    const bool early =
        (before == 0xce && byte >= 0x91 && byte <= 0x9f) || (before == 0xd0 && byte >= 0x90 && byte <= 0x9f);
    const bool late =
        (before == 0xce && byte >= 0xa0 && byte <= 0xa9) || (before == 0xd0 && byte >= 0xa0 && byte <= 0xaf);
    if (late) ++folded.back();  // its small letter is in the next block of 64
    const int shift = (c >= 'A' && c <= 'Z') || latin || early ? 0x20 : late ? -0x20 : 0;
    folded += static_cast<char>(byte + shift);
  }
  return folded;
}

RowParser::RowParser(const Dialect& dialect, std::vector<RowColumn> columns, Index cells,
                     std::vector<std::string> missing)
    : cursor_(dialect),
      ends_with_separator_(dialect.ends_with_separator),
      columns_(std::move(columns)),
      cells_(static_cast<std::size_t>(cells)),
      missing_(std::move(missing)) {
  for (const RowColumn& column : columns_) {
    if (column.one_of) one_of_.push_back(column.cell);
  }
  missing_in_categories_ = missing_in_categories(missing_);
  for (const std::string& text : missing_) missing_sizes_ |= bit_of_size(text.size());
}

bool RowParser::is_missing(std::string_view text, const RowColumn& column) const {
  const std::vector<std::string>& texts =
      column.reading == Reading::kText ? missing_in_categories_ : missing_;
  const bool may_be = (missing_sizes_ & bit_of_size(text.size())) != 0;
  if (may_be && std::ranges::find(texts, text) != texts.end()) return true;
  return std::ranges::find(column.missing, text) != column.missing.end();
}

void RowParser::read_number(Cell& cell, const RowColumn& column) {
  cell.missing = false;
  cell.is_number = true;
  const Index position = cursor_.column();
  const char* const expected = column.date ? "a date" : "a number";
  if (column.notation || column.date || !cursor_.take_number(cell.number)) {
    const std::string_view text = cursor_.take_text();
    cell.text = text;
    if (!read_value(text, column, cell)) {
      if (!is_missing(text, column)) throw BadRecord{position, in_quotes(text), expected};
      return miss(cell, column, text, expected);
    }
  }
  check_size(cell.number, position);
  if (!column.missing_numbers.empty() && stands_for_missing(cell.number, column))
    miss(cell, column, fmt::format("{}", cell.number), expected);
}

// Errors: BadRecord where there is to be a value.
void RowParser::miss(Cell& cell, const RowColumn& column, std::string_view text, const char* expected) const {
  if (column.required) throw BadRecord{cursor_.column() - 1, in_quotes(text), expected};
  cell.missing = true;
  cell.is_number = false;
}

void RowParser::read_weight(Cell& cell, const RowColumn& column) {
  const Index position = cursor_.column();
  const std::string_view text = cursor_.take_text();
  cell = {.is_number = true};
  if (!read_value(text, column, cell) || cell.number < 0)
    throw BadRecord{position, in_quotes(text), "a weight, which is a number of 0 or more"};
  check_size(cell.number, position);
  constexpr double kLeast = std::numeric_limits<Scalar>::min();
  if (cell.number > 0 && cell.number < kLeast) {  // a step may divide by it
    throw BadRecord{position, in_quotes(text), "a weight of 0, or one that single precision can hold"};
  }
}

void RowParser::read_text(Cell& cell, const RowColumn& column) {
  cell.text = cursor_.take_text();
  cell.unfolded = {};
  cell.is_number = false;
  cell.missing = is_missing(cell.text, column);
  if (cell.missing) return miss(cell, column, cell.text, "a label");
  if (column.fold_case) {
    cell.unfolded = cell.text;
    cell.text = folded_.emplace_back(fold_case(cell.text));
  }
  if (column.reading != Reading::kEither || !read_value(cell.text, column, cell)) return;
  if (stands_for_missing(cell.number, column)) return miss(cell, column, cell.text, "a label");
  cell.is_number = true;
}

std::span<const Cell> RowParser::parse(std::string_view record) {
  cursor_.start(record);
  if (!folded_.empty()) folded_.clear();
  for (const RowColumn& column : columns_) {
    if (cursor_.done()) {
      throw BadRecord{-1, fmt::format("{} fields", cursor_.column()), fmt::format("{}", columns_.size())};
    }
    Cell& cell = at(cells_, column.cell);
    switch (column.reading) {
      case Reading::kSkip:
        cursor_.take_text();
        break;
      case Reading::kNumber:
        read_number(cell, column);
        break;
      case Reading::kWeight:
        read_weight(cell, column);
        break;
      case Reading::kText:
      case Reading::kEither:
        read_text(cell, column);
        break;
    }
  }
  // An empty field behind a separator that ends the record is none.
  if (!cursor_.done() && !(ends_with_separator_ && cursor_.take_text().empty() && cursor_.done())) {
    throw BadRecord{-1, fmt::format("more than {} fields", columns_.size()),
                    fmt::format("{}", columns_.size())};
  }
  if (!one_of_.empty() &&
      std::ranges::all_of(one_of_, [this](Index cell) { return at(cells_, cell).missing; }))
    throw BadRecord{-1, "no label", fmt::format("at least one of {}", one_of_.size())};
  return cells_;
}

void FieldCursor::start(std::string_view record) {
  next_ = record.data();
  end_ = next_ + record.size();
  done_ = false;
  column_ = 0;
  if (!unquoted_.empty()) unquoted_.clear();
}

std::string_view FieldCursor::take_text() {
  while (next_ != end_ && is_filler(*next_, dialect_)) ++next_;
  if (dialect_.quotes && next_ != end_ && *next_ == '"') return take_quoted();
  const char* begin = next_;
  const char* found = find(begin, end_, dialect_.separator);
  const char* stop = found == nullptr ? end_ : found;
  std::string_view text(begin, static_cast<std::size_t>(stop - begin));
  while (!text.empty() && is_filler(text.back(), dialect_)) text.remove_suffix(1);
  end_field(stop);
  return text;
}

std::string_view FieldCursor::take_quoted() {
  const char* const begin = next_ + 1;
  const char* const quote = find(begin, end_, '"');
  const char* const closing = quote == nullptr ? nullptr : find_closing(quote, end_);
  if (closing == nullptr)
    throw BadRecord{column_, "a quote that opens a field",
                    "another one that closes it (data.quotes = false takes quotes as characters)"};
  std::string_view text(begin, closing);
  if (quote != closing) {  // only fields with quotes in them need memory of their own
    std::string& unquoted = unquoted_.emplace_back();
    for (const char* at = begin; at != closing; at += *at == '"' ? 2 : 1) unquoted += *at;
    text = unquoted;
  }
  const char* behind = closing + 1;
  while (behind != end_ && is_filler(*behind, dialect_)) ++behind;
  if (behind != end_ && *behind != dialect_.separator)
    throw BadRecord{column_, fmt::format("{} behind a closing quote", in_quotes({behind, end_})),
                    "the end of the field"};
  end_field(behind);
  return text;
}

std::optional<Index> find_record_end(std::string_view text, const Dialect& rules, bool inside, bool whole) {
  std::optional<Index> end_if_never_closed;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t found = text.find('\n', begin);
    if (found == std::string_view::npos && !whole) return std::nullopt;
    const std::size_t end = std::min(found, text.size() - 1) + 1;
    const auto record_end = static_cast<Index>(end);
    if (!rules.quotes) return record_end;
    const Quotes quotes = quotes_behind(text.substr(begin, end - begin), rules, inside);
    if (quotes == Quotes::kOutside) return record_end;
    if (quotes == Quotes::kNeverClosed) return end_if_never_closed.value_or(record_end);
    if (quotes == Quotes::kOpened) end_if_never_closed = record_end;
    inside = true;
    begin = end;
  }
  if (!whole) return std::nullopt;
  return end_if_never_closed.value_or(std::ssize(text));
}

LinePart look_at_lines(std::string_view lines, const Dialect& rules) {
  LinePart part;
  // Lines without quotes change nothing.
  for (std::size_t end = 0, quote = 0;
       rules.quotes && (quote = lines.find('"', end)) != std::string_view::npos;) {
    const std::size_t begin = quote == 0 ? 0 : lines.rfind('\n', quote - 1) + 1;
    end = std::min(lines.find('\n', quote), lines.size() - 1) + 1;
    const std::string_view line = lines.substr(begin, end - begin);
    const bool differs =
        part.from_inside != part.from_outside;  // seldom: once a field closes they are the same
    part.from_outside = one_line_on(part.from_outside, line, rules);
    part.from_inside = differs ? one_line_on(part.from_inside, line, rules) : part.from_outside;
  }
  return part;
}

bool RecordLines::next(std::string_view& record) {
  while (!rest_.empty()) {
    const auto length =
        static_cast<std::size_t>(find_record_end(rest_, rules_, false, true).value_or(std::ssize(rest_)));
    record = rest_.substr(0, length);
    rest_.remove_prefix(length);
    line_ = next_line_;
    next_line_ += rules_.quotes ? std::ranges::count(record, '\n') + (record.ends_with('\n') ? 0 : 1) : 1;
    record = without_line_end(record);
    if (!record.empty()) return true;
  }
  return false;
}

}  // namespace lockstep
