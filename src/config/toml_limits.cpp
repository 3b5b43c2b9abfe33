// The text is gone through once, before it is parsed. Strings and comments are skipped. The parts of a key
// are its dots and one more; a dot belongs to the key that began behind the last bracket, comma, equals sign
// or line end. (Numbers have dots too, one at most.)
#include "toml_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"

namespace lockstep {
namespace {

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
