#include "lockstep/base/terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr int kMaxNested = 100;

class Parser {
 public:
  Parser(std::string_view text, const TermsOption& option) : text_(text), option_(option) {}

  std::vector<Term> parse() {
    std::vector<Term> terms = chain();
    if (position_ < text_.size()) fail(option_.name);
    if (terms.empty())
      throw ConfigError("{} is empty; give for example \"{}\"", option_.key, option_.example);
    return terms;
  }

 private:
  // Terms up to the end, or to what closes the parentheses around them.
  std::vector<Term> chain() {
    std::vector<Term> terms;
    skip_blanks();
    while (position_ < text_.size() && text_[position_] != '|' && text_[position_] != ')') {
      terms.push_back(term());
      skip_blanks();
    }
    return terms;
  }

  Term term() {
    Term term;
    term.option = option_.key;
    const std::size_t start = position_;
    term.name = word(option_.name);
    skip_blanks();
    const bool composite = std::ranges::find(option_.composites, term.name) != option_.composites.end();
    if (composite) {
      chains(term);
      term.text = text_.substr(start, position_ - start);
    } else if (accept('(')) {
      arguments(term);
      term.text = text_.substr(start, position_ - start);
    } else {
      term.text = term.name;
    }
    return term;
  }

  void chains(Term& term) {
    if (!accept('(')) fail(fmt::format("'(' and the layers of {}", term.name));
    if (++depth_ > kMaxNested) fail(fmt::format("at most {} composites inside each other", kMaxNested));
    do {
      term.chains.push_back(chain());
      if (term.chains.back().empty()) fail(option_.name);
    } while (accept('|'));
    if (!accept(')')) fail("'|' or ')'");
    --depth_;
  }

  void arguments(Term& term) {
    skip_blanks();
    if (accept(')')) return;
    do {
      skip_blanks();
      TermArgument argument{.key = "", .value = value("an argument")};
      skip_blanks();
      if (accept('=')) {
        skip_blanks();
        argument.key = std::exchange(argument.value, value("a value"));
        skip_blanks();
      }
      term.arguments.push_back(std::move(argument));
    } while (accept(','));
    if (!accept(')')) fail("',' or ')'");
  }

  std::string value(std::string_view expected) {
    for (const char quote : {'"', '\''}) {
      if (accept(quote)) return quoted_value(quote);
    }
    std::string text = word(expected);
    if (!accept('(')) return text;
    skip_blanks();
    const std::string inside = word("a number");
    skip_blanks();
    if (!accept(')')) fail("')'");
    return fmt::format("{}({})", text, inside);
  }

  // The quote that opens it is behind.
  std::string quoted_value(char quote) {
    const std::size_t start = position_;
    while (position_ < text_.size() && text_[position_] != quote) ++position_;
    const std::string_view value = text_.substr(start, position_ - start);
    if (!accept(quote)) fail(fmt::format("{} behind a value in quotes", quote));
    return std::string(value);
  }

  std::string word(std::string_view expected) {
    const std::size_t start = position_;
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    if (position_ == start) fail(expected);
    return std::string(text_.substr(start, position_ - start));
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
  }

  void skip_blanks() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0)
      ++position_;
  }

  bool accept(char c) {
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  [[noreturn]] void fail(std::string_view expected) const {
    const std::string found =
        position_ == text_.size() ? "the end of the text" : in_quotes(text_.substr(position_, 12));
    throw ConfigError("{}, column {}: expected {}, found {}", option_.key, position_ + 1, expected, found);
  }

  std::string_view text_;
  const TermsOption& option_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

std::string shown(const TermArgument& argument) {
  return argument.key.empty() ? argument.value : argument.key + "=" + argument.value;
}

}  // namespace

std::vector<Term> parse_terms(std::string_view text, const TermsOption& option) {
  return Parser(text, option).parse();
}

const TermArgument* TermArguments::take(std::string_view key, bool positional) {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const TermArgument& argument = term_->arguments[i];
    if (used_[i] || (argument.key.empty() ? !positional : argument.key != key)) continue;
    used_[i] = true;
    return &argument;
  }
  return nullptr;
}

Index TermArguments::take_index(std::string_view key, Index least, std::optional<Index> fallback) {
  const TermArgument* argument = take(key, true);
  if (argument == nullptr && fallback) return *fallback;
  if (argument == nullptr) {
    std::string given;
    for (const TermArgument& other : term_->arguments) given += shown(other) + ", ";
    fail(fmt::format("'{}' is missing: write {}({}{})", key, term_->name, excerpt(given), key));
  }
  const std::optional<Index> value = number_in<Index>(argument->value);
  if (!value || *value < least) {
    fail(fmt::format("'{}' must be a whole number of at least {}, found {}", key, least,
                     in_quotes(argument->value)));
  }
  return *value;
}

double TermArguments::take_number(std::string_view key, double fallback) {
  const TermArgument* argument = take(key, true);
  if (argument == nullptr) return fallback;
  const std::optional<double> value = number_in<double>(argument->value);
  if (!value || !std::isfinite(*value)) {
    fail(fmt::format("'{}' must be a number, found {}", key, in_quotes(argument->value)));
  }
  return *value;
}

bool TermArguments::has_next() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i] && term_->arguments[i].key.empty()) return true;
  }
  return false;
}

std::string TermArguments::take_next(std::string_view name) {
  if (!has_next()) fail(fmt::format("{} is missing", name));
  return take("", true)->value;
}

std::string TermArguments::take_word(std::string_view key, std::string_view fallback) {
  const TermArgument* argument = take(key, false);
  return argument == nullptr ? std::string(fallback) : argument->value;
}

bool TermArguments::take_flag(std::string_view key, bool fallback) {
  const std::string value = take_word(key, fallback ? "true" : "false");
  if (value != "true" && value != "false") {
    fail(fmt::format("'{}' must be true or false, found {}", key, in_quotes(value)));
  }
  return value == "true";
}

void TermArguments::finish() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    fail(fmt::format("does not know what to do with the argument {}", in_quotes(shown(term_->arguments[i]))));
  }
}

void TermArguments::fail(const std::string& problem) {
  throw ConfigError(problem);
}

}  // namespace lockstep
