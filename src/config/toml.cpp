// The config as TOML. Read, it becomes the settings that flags would be, with file and line in every error;
// written, it has every option.
#include "lockstep/config/toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
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

// text_of() the value, or all elements of a list.
template <class TextOf>
std::optional<std::string> list_text(const toml::node& node, const TextOf& text_of) {
  const toml::array* array = node.as_array();
  if (!array) return text_of(node);
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const std::optional<std::string> text = text_of(element);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return ValueType<std::vector<std::string>>::text(texts);
}

// Adds "key=text" for each entry of the table. The parts of a key that stands without quotes have their dots
// between them, as it is written. Gives whether all values are texts.
bool add_pairs(const toml::table& table, const std::string& start, std::vector<std::string>& pairs) {
  return std::ranges::all_of(table, [&](const auto& entry) {
    const std::string key = start + std::string(entry.first.str());
    const toml::table* inner = entry.second.as_table();
    if (inner) return add_pairs(*inner, key + ".", pairs);
    const auto text = entry.second.template value_exact<std::string>();
    if (text) pairs.push_back(fmt::format("{}={}", key, *text));
    return text.has_value();
  });
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
      return list_text(node, number_text);
    case ValueKind::kTextList:
      return list_text(node, [](const toml::node& each) { return each.value_exact<std::string>(); });
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

// Goes through one document, which must outlive this, and collects its settings and everything that is wrong.
class Reading {
 public:
  explicit Reading(std::span<const Option> options) : options_(options) {
    for (const Option& option : options) {
      if (sections_.empty() || sections_.back() != option.section()) sections_.emplace_back(option.section());
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

  std::vector<Setting> take_settings() { return std::move(settings_); }

  /// In the order of lines; toml++ hands out the keys in alphabetical order.
  std::vector<Problem> take_problems() {
    std::ranges::stable_sort(problems_, {}, &Problem::line);
    return std::move(problems_);
  }

 private:
  void read_section(std::string_view section, const toml::table& table) {
    for (const auto& entry : table) {
      const toml::key& name = entry.first;
      const toml::node& node = entry.second;
      const std::size_t line = name.source().begin.line;
      const std::string key = fmt::format("{}.{}", section, name.str());
      const Option* option = find_option(options_, key);
      if (option == nullptr) {
        add_problem(line, [this, key] { return unknown_key(key); });
      } else {
        read_value(*option, node, line);
      }
    }
  }

  void read_value(const Option& option, const toml::node& node, std::size_t line) {
    std::optional<std::string> text = value_text(node, option.kind);
    if (!text && option.takes_numbers) text = list_text(node, number_text);
    std::vector<std::string> pairs;
    const toml::table* entries = option.takes_table ? node.as_table() : nullptr;
    if (entries && add_pairs(*entries, "", pairs)) text = ValueType<std::vector<std::string>>::text(pairs);
    const std::string twice = text ? repeated_name(option, *text) : "";
    if (!twice.empty()) {
      add_problem(line, [&option, twice] {
        return fmt::format("{}: {} stands twice: name it once", option.key, in_quotes(twice));
      });
    } else if (text && option.accepts(*text)) {
      settings_.push_back({option.key, *text});
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
  std::vector<Setting> settings_;
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
  if (const std::string_view wide = marked_encoding(text); !wide.empty())
    return fmt::format("; the file is {0}, expected UTF-8: convert it with iconv -f {0} -t UTF-8", wide);
  return other ? "; a config is TOML: sections such as [train], and below them lines such as lr = 0.1" : "";
}

// The TOML library parses and destroys the tables of a key by recursion, so that a key of very many parts
// would end the stack. (It counts brackets itself.) A dot belongs to the key that began behind the last
// bracket, comma, equals sign or line end; texts of so many dots without one of those are no keys, but nobody
// writes them.
void check_keys(std::string_view text, const std::string& file) {
  constexpr Index kMaxParts = 1000;
  constexpr std::string_view kEnds = "[{,=\n";
  Index line = 1;
  Index parts = 1;
  for (const char c : text) {
    if (c == '.') ++parts;
    if (kEnds.find(c) != std::string_view::npos) parts = 1;
    if (c == '\n') ++line;
    if (parts <= kMaxParts) continue;
    throw ConfigError("{}:{}: a key of more than {} parts (a.b has two)", file, line, with_commas(kMaxParts));
  }
}

toml::table parse_document(const std::string& text, const std::string& file) {
  check_keys(text, file);
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const toml::source_position position = error.source().begin;
    throw ConfigError("{}:{}:{}: not valid TOML: {}{}{}", file, position.line, position.column,
                      excerpt(error.description(), kMaxLineBytes), describe_language(text, file),
                      line_below(text, position.line));
  }
}

std::string spaced_list(std::string_view texts) {
  std::string list;
  for (const char c : texts) list += c == ',' ? std::string(", ") : std::string(1, c);
  return list;
}

std::string quoted_list(std::string_view text) {
  std::vector<std::string> quoted;
  const auto texts = ValueType<std::vector<std::string>>::parse(text);
  for (const std::string& each : texts.value_or(std::vector<std::string>{})) {
    quoted.push_back(toml_string(each));
  }
  return fmt::format("{}", fmt::join(quoted, ", "));
}

std::string toml_line(const Option& option, const Config& config, bool has_effect) {
  if (!option.has_value(config))
    return fmt::format("# {} is not given: {}\n", option.name(), option.if_not_given);
  const std::string line = fmt::format("{} = {}", option.name(), toml_value(option, option.text(config)));
  return has_effect ? line + "\n" : fmt::format("# {}: without effect here\n", line);
}

}  // namespace

std::vector<Setting> read_toml(const std::string& text, const std::string& file,
                               std::span<const Option> options) {
  Reading reading(options);
  const toml::table document = parse_document(text, file);
  reading.read(document);
  const std::vector<Problem> problems = reading.take_problems();
  if (problems.empty()) return reading.take_settings();
  std::vector<std::string> lines;
  for (const Problem& problem : std::span(problems).first(std::min(problems.size(), kMaxProblems))) {
    lines.push_back(fmt::format("{}:{}: {}", file, problem.line, problem.text()));
  }
  if (problems.size() > kMaxProblems) {
    lines.push_back(
        fmt::format("{}: {} mistakes in all; these are the first", file, with_commas(std::ssize(problems))));
  }
  throw ConfigError("{}", fmt::join(lines, "\n"));
}

std::string toml_value(const Option& option, const std::string& text) {
  const bool word = option.kind == ValueKind::kCountOrAuto && !ValueType<Index>::parse(text);
  if (option.kind == ValueKind::kText || word) return toml_string(text);
  if (option.kind == ValueKind::kTextList) return fmt::format("[{}]", quoted_list(text));
  if (option.kind == ValueKind::kNumberList) return fmt::format("[{}]", spaced_list(text));
  return text;
}

std::string to_toml(const Config& config, std::span<const Option> options,
                    const std::set<std::string>& without_effect) {
  std::string toml = "# Every option of the run, written by trainer; can be used as a config.\n";
  std::string_view section;
  for (const Option& option : options) {
    if (option.section() != section) {
      section = option.section();
      toml += fmt::format("\n[{}]\n", section);
    }
    toml += toml_line(option, config, !without_effect.contains(option.key));
  }
  return toml;
}

std::uint64_t config_hash(const Config& config, std::span<const Option> options) {
  return hash_text(to_toml(config, options));
}

}  // namespace lockstep
