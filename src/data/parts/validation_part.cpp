// The grammar of data.validation where it names no file.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/options.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

using By = ValidationPart::By;

struct PartWord {
  By by;
  const char* name;
  const char* usage = "";
};
constexpr std::array kShareWords{
    PartWord{By::kRecord, "share", "share(0.1)"}, PartWord{By::kClass, "stratified", "stratified(0.1)"},
    PartWord{By::kTime, "time", "time(date, 0.1)"}, PartWord{By::kGroup, "group", "group(customer, 0.1)"}};
constexpr std::array kFoldWords{PartWord{By::kRecord, "record"}, PartWord{By::kClass, "class"},
                                PartWord{By::kTime, "time"}, PartWord{By::kGroup, "group"},
                                PartWord{By::kColumn, "column"}};

std::string without_quotes(std::string_view text) {
  const bool quoted =
      text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

// The column as it stands between parentheses.
std::string column_text(const std::string& column) {
  const bool plain = trimmed(column) == column && without_quotes(column) == column;
  return plain ? column : fmt::format("\"{}\"", column);
}

[[noreturn]] void refuse_part(const ValidationPart& part, std::string_view expected, std::string_view usage) {
  throw ConfigError("{}: expected {}, as in \"{}\"", part.setting, expected, usage);
}

// The position of the last comma that is outside of quotes.
std::size_t last_comma(std::string_view text) {
  std::size_t last = std::string_view::npos;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote != 0 ? char{0} : c;
    if (c == ',' && quote == 0) last = i;
  }
  return last;
}

// Takes "from = T" and "to = T" off the end of what stands between the parentheses of time(...).
std::string_view take_span(std::string_view inside, ValidationPart& part) {
  for (std::size_t comma = last_comma(inside); comma != std::string_view::npos; comma = last_comma(inside)) {
    const std::string_view term = inside.substr(comma + 1);
    const std::size_t equals = std::min(term.find('='), term.size());
    const std::string_view name = trimmed(term.substr(0, equals));
    if (equals == term.size() || (name != "from" && name != "to")) break;
    std::string& end = name == "from" ? part.from : part.to;
    error_if(!end.empty(), "{}: '{}' stands twice, with {} and {}: give it once", part.setting, name,
             in_quotes(trimmed(term.substr(equals + 1))), in_quotes(end));
    end = without_quotes(trimmed(term.substr(equals + 1)));
    inside = inside.substr(0, comma);
  }
  return inside;
}

void parse_share(const PartWord& word, std::string_view inside, ValidationPart& part) {
  part.by = word.by;
  if (word.by == By::kTime) {
    const std::string_view column = take_span(inside, part);
    if (!part.from.empty()) {
      part.column = without_quotes(trimmed(column));
      if (!part.column.empty()) return;
    }
    if (column.size() != inside.size())
      refuse_part(part, "a column, then from, and perhaps to",
                  "time(date, from = 2024-01-01, to = 2024-07-01)");
  }
  const std::size_t comma = inside.rfind(',');
  const bool has_column = comma != std::string_view::npos;
  if (has_column) part.column = without_quotes(trimmed(inside.substr(0, comma)));
  const std::optional<double> share = parse_number(trimmed(has_column ? inside.substr(comma + 1) : inside));
  if (!share || part.reads_column() != has_column || (has_column && part.column.empty())) {
    refuse_part(part,
                part.reads_column() ? "a column and the share of the samples" : "the share of the samples",
                word.usage);
  }
  error_if(!(*share > 0 && *share < 1), "{}: expected a share above 0 and below 1, found {}", part.setting,
           *share);
  part.share = *share;
}

// "by = group(customer)".
void parse_way(std::string_view text, ValidationPart& part) {
  const auto refuse = [&part] {
    refuse_part(part, "by = record, class, time(COLUMN), group(COLUMN) or column(COLUMN) behind the comma",
                "fold(2/5, by = group(customer))");
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || trimmed(text.substr(0, equals)) != "by") refuse();
  const std::string_view way = trimmed(text.substr(equals + 1));
  const std::size_t open = std::min(way.find('('), way.size());
  const auto word = std::ranges::find(kFoldWords, trimmed(way.substr(0, open)), &PartWord::name);
  if (word == kFoldWords.end()) refuse();
  part.by = word->by;
  if (open < way.size() && way.ends_with(')'))
    part.column = without_quotes(trimmed(way.substr(open + 1, way.size() - open - 2)));
  if (part.reads_column() == part.column.empty() || (open < way.size()) != part.reads_column()) refuse();
}

void parse_fold(std::string_view inside, ValidationPart& part) {
  const std::size_t comma = std::min(inside.find(','), inside.size());
  const std::string_view number = inside.substr(0, comma);
  const std::size_t slash = std::min(number.find('/'), number.size());
  const auto whole = [](std::string_view text) { return number_in<Index>(trimmed(text)).value_or(0); };
  part.fold = whole(number.substr(0, slash));
  part.folds = whole(number.substr(std::min(slash + 1, number.size())));
  if (part.folds < 2 || part.folds > kMaxFolds || part.fold < 1 || part.fold > part.folds) {
    refuse_part(part, fmt::format("the number of a fold of 2 to {} folds", kMaxFolds), "fold(2/5)");
  }
  if (comma < inside.size()) parse_way(inside.substr(comma + 1), part);
}

}  // namespace

std::optional<ValidationPart> parse_validation_part(std::string_view key, std::string_view text) {
  text = trimmed(text);
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const std::string_view name = trimmed(text.substr(0, open));
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  ValidationPart part{.setting = fmt::format("{} = {}", key, in_quotes(text))};
  const auto word = std::ranges::find(kShareWords, name, &PartWord::name);
  if (word != kShareWords.end()) {
    parse_share(*word, inside, part);
  } else if (name == "fold") {
    parse_fold(inside, part);
  } else {
    return std::nullopt;
  }
  return part;
}

std::string to_string(const ValidationPart& part) {
  if (!part.from.empty()) {
    return fmt::format("time({}, from = {}{})", column_text(part.column), in_quotes(part.from),
                       part.to.empty() ? "" : ", to = " + in_quotes(part.to));
  }
  if (part.folds == 0) {
    const std::string column = part.reads_column() ? column_text(part.column) + ", " : "";
    return fmt::format("{}({}{})", std::ranges::find(kShareWords, part.by, &PartWord::by)->name, column,
                       part.share);
  }
  const std::string column = part.reads_column() ? fmt::format("({})", column_text(part.column)) : "";
  const char* word = std::ranges::find(kFoldWords, part.by, &PartWord::by)->name;
  const std::string way = part.by == By::kRecord ? "" : fmt::format(", by = {}{}", word, column);
  return fmt::format("fold({}/{}{})", part.fold, part.folds, way);
}

std::optional<ValidationPart> validation_part(const DataOptions& data) {
  return parse_validation_part("data.validation", data.validation);
}

std::optional<ValidationPart> test_part(const DataOptions& data) {
  if (data.test_part.empty()) return std::nullopt;
  std::optional<ValidationPart> part = parse_validation_part("data.test_part", data.test_part);
  if (part && part->folds == 0) return part;
  throw ConfigError(
      "data.test_part = {}: expected share(0.1), stratified(0.1), time(COLUMN, 0.1), time(COLUMN, from = T, "
      "to = T) or group(COLUMN, 0.1); a file of test samples is data.test",
      in_quotes(data.test_part));
}

}  // namespace lockstep
