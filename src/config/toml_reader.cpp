#include "toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxProblems = 10;  // further mistakes are counted, not described

struct Problem {
  std::size_t line = 0;
  std::function<std::string()>
      text;  // looks for near names, which takes too long where thousands are unknown
};

std::optional<std::string> number_text(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return ValueType<Index>::text(whole->get());
  if (const auto* number = node.as_floating_point()) return ValueType<double>::text(number->get());
  return std::nullopt;
}

std::optional<std::string> number_list_text(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (!array) return number_text(node);
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const auto text = number_text(element);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

std::optional<std::string> text_list_text(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (!array) return node.value_exact<std::string>();
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return ValueType<std::vector<std::string>>::text(texts);
}

// The value as the text that an option takes; nothing if the TOML type does not fit.
std::optional<std::string> value_text(const toml::node& node, ValueKind kind) {
  switch (kind) {
    case ValueKind::kText:
      return node.value_exact<std::string>();
    case ValueKind::kBoolean:
      if (!node.is_boolean()) return std::nullopt;
      return ValueType<bool>::text(node.as_boolean()->get());
    case ValueKind::kWholeNumber:
      return node.is_integer() ? number_text(node) : std::nullopt;
    case ValueKind::kCountOrAuto:
      return node.is_string() ? node.value_exact<std::string>() : value_text(node, ValueKind::kWholeNumber);
    case ValueKind::kNumber:
      return number_text(node);
    case ValueKind::kNumberList:
      return number_list_text(node);
    case ValueKind::kTextList:
      return text_list_text(node);
  }
  return std::nullopt;
}

std::string describe_value(const toml::node& node) {
  if (const auto number = number_text(node)) return *number;
  if (const auto* text = node.as_string()) return fmt::format("the string \"{}\"", excerpt(text->get()));
  if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
  if (node.is_table()) return "a section";
  if (const auto* array = node.as_array()) {
    return array->empty() ? "an empty list" : fmt::format("a list of {}", array->size());
  }
  return node.is_time() ? "a time of day" : "a date";
}

// Goes through one document, which must outlive this, and collects the items for CLI11 and everything that is
// wrong.
class Reading {
 public:
  explicit Reading(std::span<const Option> options) : options_(options) {
    for (const Option& option : options) {
      if (!option.earlier && (sections_.empty() || sections_.back() != option.section()))
        sections_.emplace_back(option.section());
    }
  }

  void read(const toml::table& document) {
    for (const auto& entry : document) {
      const toml::key& name = entry.first;
      const toml::node& node = entry.second;
      const std::size_t line = name.source().begin.line;
      const bool is_section = std::find(sections_.begin(), sections_.end(), name.str()) != sections_.end();
      const toml::table* section = node.as_table();
      if (is_section && section) {
        read_section(name.str(), *section);
      } else if (is_section) {
        add_problem(line, [&name, &node] {
          return fmt::format("expected a section, [{}], found {}", name.str(), describe_value(node));
        });
      } else if (section) {
        add_problem(line, [this, &name] { return unknown_section(name.str()); });
      } else {
        add_problem(line, [this, &name] { return unknown_key(name.str()); });
      }
    }
  }

  std::vector<CLI::ConfigItem> take_items() { return std::move(items_); }

  /// In the order of lines; toml++ hands out the keys in alphabetical order.
  std::vector<Problem> take_problems() {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    return std::move(problems_);
  }

 private:
  void read_section(std::string_view section, const toml::table& table) {
    for (const auto& entry : table) {
      const toml::key& name = entry.first;
      const toml::node& node = entry.second;
      const std::size_t line = name.source().begin.line;
      const std::string key = fmt::format("{}.{}", section, name.str());
      const auto option = std::find_if(options_.begin(), options_.end(),
                                       [&key](const Option& candidate) { return candidate.key == key; });
      if (option == options_.end()) {
        add_problem(line, [this, key] { return unknown_key(key); });
      } else {
        read_value(*option, node, line);
      }
    }
  }

  void read_value(const Option& option, const toml::node& node, std::size_t line) {
    std::optional<std::string> text = value_text(node, option.kind);
    if (!text && option.takes_numbers) text = number_list_text(node);
    if (text && option.accepts(*text)) {
      items_.push_back({{}, option.key, {*text}});
    } else {
      add_problem(line, [&option, text, &node] {
        const std::string refusal = describe_refusal(option, text.value_or(""), describe_value(node));
        return fmt::format("{}: {}", option.key, refusal);
      });
    }
  }

  std::string unknown_key(std::string_view key) const {
    const std::string hint = suggest_key(key, options_);
    return fmt::format("unknown key {}; {}", in_quotes(key),
                       hint.empty() ? "'trainer --help-all' lists every key" : hint);
  }

  std::string unknown_section(std::string_view name) const {
    return fmt::format("unknown section [{}]{} (known: {})", excerpt(name), suggestion(name, sections_),
                       fmt::join(sections_, ", "));
  }

  void add_problem(std::size_t line, std::function<std::string()> text) {
    problems_.push_back({line, std::move(text)});
  }

  std::span<const Option> options_;
  std::vector<std::string> sections_;
  std::vector<CLI::ConfigItem> items_;
  std::vector<Problem> problems_;
};

constexpr std::size_t kMaxLineBytes = 200;

// The line of that number below an error; nothing where it is no text.
std::string line_below(const std::string& text, std::size_t number) {
  std::istringstream in(text);
  std::string line;
  for (std::size_t i = 0; i < number; ++i) std::getline(in, line);
  return is_text(line) ? "\n  " + excerpt(line, kMaxLineBytes) : "";
}

// Advice for a file in another language; "" for what looks like TOML.
std::string describe_language(const std::string& text, const std::string& file) {
  const bool other = file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return "; the file is UTF-16, expected UTF-8: convert it with iconv -f UTF-16 -t UTF-8";
  }
  return other ? "; a config is TOML: sections such as [train], and below them lines such as lr = 0.1" : "";
}

toml::table parse_document(const std::string& text, const std::string& file) {
  check_toml_limits(text, file);
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const toml::source_position position = error.source().begin;
    throw ConfigError(fmt::format("{}:{}:{}: not valid TOML: {}{}{}", file, position.line, position.column,
                                  excerpt(error.description(), kMaxLineBytes), describe_language(text, file),
                                  line_below(text, position.line)));
  }
}

// The text is gone through once, before it is parsed. Strings and comments are skipped. The parts of a key
// are its dots and one more; a dot belongs to the key that began behind the last bracket, comma, equals sign
// or line end. (Numbers have dots too, one at most.)

constexpr Index kMaxKeyParts = 32;
constexpr Index kMaxBrackets = 32;

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      take(text_[at_++]);
    }
  }

  struct Deepest {
    Index count = 0;
    Index line = 1;
  };
  Deepest parts;
  Deepest brackets;

 private:
  void take(char c) {
    if (c == '.') return note(++dots_ + 1, parts);
    if (c == '[' || c == '{') note(++open_, brackets);
    if (c == ']' || c == '}') --open_;
    if (c == '\n') ++line_;
    const bool ends_key = c == '[' || c == '{' || c == ',' || c == '=' || c == '\n';
    if (ends_key) dots_ = 0;
  }

  void note(Index count, Deepest& deepest) const {
    if (count > deepest.count) deepest = {count, line_};
  }

  // One that is not closed ends with its line, or with three quotes with the text.
  void skip_string(char quote) {
    const bool many_lines = text_.substr(at_, 3) == std::string(3, quote);
    const std::size_t quotes = many_lines ? 3 : 1;
    at_ += quotes;
    while (at_ < text_.size() && text_.substr(at_, quotes) != std::string(quotes, quote)) {
      if (text_[at_] == '\n' && !many_lines) return;
      if (text_[at_] == '\\' && quote == '"') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++line_;
      ++at_;
    }
    at_ = std::min(at_ + quotes, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Index line_ = 1;
  Index dots_ = 0;
  Index open_ = 0;
};

}  // namespace

std::vector<CLI::ConfigItem> TomlFormat::from_config(std::istream& in) const {
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Reading reading(options_);
  const toml::table document = parse_document(text, file_);
  reading.read(document);
  const std::vector<Problem> problems = reading.take_problems();
  if (problems.empty()) return reading.take_items();
  std::vector<std::string> lines;
  for (const Problem& problem : std::span(problems).first(std::min(problems.size(), kMaxProblems))) {
    lines.push_back(fmt::format("{}:{}: {}", file_, problem.line, problem.text()));
  }
  if (problems.size() > kMaxProblems) {
    lines.push_back(
        fmt::format("{}: {} mistakes in all; these are the first", file_, with_commas(std::ssize(problems))));
  }
  throw ConfigError(fmt::format("{}", fmt::join(lines, "\n")));
}

void check_toml_limits(std::string_view text, const std::string& file) {
  Scan scan(text);
  scan.run();
  if (scan.parts.count > kMaxKeyParts) {
    throw ConfigError(fmt::format("{}:{}: a key of {} parts, expected at most {} (a.b has two)", file,
                                  scan.parts.line, with_commas(scan.parts.count), kMaxKeyParts));
  }
  if (scan.brackets.count > kMaxBrackets) {
    throw ConfigError(fmt::format("{}:{}: brackets are nested {} deep, expected at most {}", file,
                                  scan.brackets.line, with_commas(scan.brackets.count), kMaxBrackets));
  }
}

}  // namespace lockstep
