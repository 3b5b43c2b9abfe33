#include "lockstep/nn/model_text.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const TextOption& option) : text_(text), option_(option) {}

  std::vector<LayerSpec> model() {
    std::vector<LayerSpec> layers;
    skip_blanks();
    while (place_ < text_.size()) {
      layers.push_back(layer());
      skip_blanks();
    }
    if (layers.empty())
      throw ConfigError(fmt::format("{} is empty; give for example \"{}\"", option_.key, option_.example));
    return layers;
  }

 private:
  LayerSpec layer() {
    LayerSpec spec;
    spec.option = option_.key;
    const std::size_t start = place_;
    spec.name = word(option_.name);
    skip_blanks();
    if (accept('(')) {
      arguments(spec);
      spec.text = text_.substr(start, place_ - start);
    } else {
      spec.text = spec.name;
    }
    return spec;
  }

  void arguments(LayerSpec& spec) {
    skip_blanks();
    if (accept(')')) return;
    do {
      skip_blanks();
      LayerArgument argument{.key = "", .value = word("an argument")};
      skip_blanks();
      if (accept('=')) {
        skip_blanks();
        argument.key = std::exchange(argument.value, word("a value"));
        skip_blanks();
      }
      spec.arguments.push_back(std::move(argument));
    } while (accept(','));
    if (!accept(')')) fail("',' or ')'");
  }

  std::string word(std::string_view expected) {
    const std::size_t start = place_;
    while (place_ < text_.size() && is_word(text_[place_])) ++place_;
    if (place_ == start) fail(expected);
    return std::string(text_.substr(start, place_ - start));
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
  }

  void skip_blanks() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
  }

  bool accept(char c) {
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  [[noreturn]] void fail(std::string_view expected) const {
    const std::string found =
        place_ == text_.size() ? "the end of the text" : fmt::format("'{}'", text_.substr(place_, 12));
    throw ConfigError(
        fmt::format("{}, column {}: expected {}, found {}", option_.key, place_ + 1, expected, found));
  }

  std::string_view text_;
  TextOption option_;
  std::size_t place_ = 0;
};

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<LayerSpec> parse_model_text(std::string_view text, const TextOption& option) {
  return Parser(text, option).model();
}

const LayerArgument* LayerArguments::take(std::string_view key, bool positional) {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const LayerArgument& argument = spec_->arguments[i];
    if (used_[i] || (argument.key.empty() ? !positional : argument.key != key)) continue;
    used_[i] = true;
    return &argument;
  }
  return nullptr;
}

Index LayerArguments::take_index(std::string_view key, Index least) {
  const LayerArgument* argument = take(key, true);
  if (argument == nullptr) fail(fmt::format("'{}' is missing: write {}({})", key, spec_->name, key));
  const std::optional<Index> value = parse_number<Index>(argument->value);
  if (!value || *value < least) {
    fail(fmt::format("'{}' must be a whole number of at least {}, found '{}'", key, least, argument->value));
  }
  return *value;
}

double LayerArguments::take_number(std::string_view key, double fallback) {
  const LayerArgument* argument = take(key, true);
  if (argument == nullptr) return fallback;
  const std::optional<double> value = parse_number<double>(argument->value);
  if (!value) fail(fmt::format("'{}' must be a number, found '{}'", key, argument->value));
  return *value;
}

std::string LayerArguments::take_word(std::string_view key, std::string_view fallback) {
  const LayerArgument* argument = take(key, false);
  return argument == nullptr ? std::string(fallback) : argument->value;
}

void LayerArguments::finish() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    const LayerArgument& argument = spec_->arguments[i];
    const std::string shown = argument.key.empty() ? argument.value : argument.key + "=" + argument.value;
    fail(fmt::format("does not know what to do with the argument '{}'", shown));
  }
}

void LayerArguments::fail(const std::string& problem) const {
  throw ConfigError(fmt::format("{}: '{}': {}", spec_->option, spec_->text, problem));
}

}  // namespace lockstep
