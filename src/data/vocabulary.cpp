#include "lockstep/data/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kKinds{"bytes", "characters", "words", "ids"};
constexpr std::size_t kWordBytes = 64;
constexpr Index kByteValues = 256;
constexpr Index kMaxWords = 500'000;
constexpr const char* kStandIn = "\uFFFD";

bool in_word(char c) {
  return (c >= '0' && c <= '9') || (lower_case(c) >= 'a' && lower_case(c) <= 'z') ||
         static_cast<signed char>(c) < 0;
}

std::size_t word_length(std::string_view text) {
  std::size_t length = text.size() > 1 && text[0] == ' ' && in_word(text[1]) ? 1 : 0;
  if (!in_word(text[length])) return 1;
  while (length < std::min(text.size(), kWordBytes) && in_word(text[length])) {
    const std::size_t next = utf8_length(text.substr(length));
    if (next == 0) return 0;
    length += next;
  }
  return length;
}

}  // namespace

TokenRule parse_token_rule(const std::string& tokens, const std::string& unknown) {
  TokenRule rule{.replaces = unknown == "replace"};
  const auto kind = std::ranges::find(kKinds, tokens);
  if (kind != kKinds.end() && tokens != "words") {
    rule.kind = static_cast<TokenKind>(kind - kKinds.begin());
    return rule;
  }
  rule.kind = TokenKind::kWords;
  if (tokens.starts_with("words(") && tokens.ends_with(')')) {
    const char* const end = tokens.data() + tokens.size() - 1;
    const auto [stop, error] = std::from_chars(tokens.data() + 6, end, rule.words);
    if (error == std::errc() && stop == end && rule.words >= 1 && rule.words <= kMaxWords) return rule;
  }
  throw ConfigError(
      fmt::format("data.tokens: found {}, expected bytes, characters, words(N) with N from 1 to {}, as in "
                  "words(20000), or, of arrays, ids",
                  in_quotes(tokens), with_commas(kMaxWords)));
}

std::string to_string(TokenKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::size_t token_length(TokenKind kind, std::string_view text) {
  if (kind == TokenKind::kBytes) return 1;
  return kind == TokenKind::kCharacters ? utf8_length(text) : word_length(text);
}

Vocabulary::Vocabulary(TokenRule rule, std::vector<std::string> values)
    : rule_(rule), values_(std::move(values)) {
  if (rule_.kind == TokenKind::kBytes) {
    size_ = kByteValues;
    return;
  }
  size_ = std::ssize(values_) + (rule_.replaces ? 1 : 0);
  unknown_ = rule_.replaces ? size_ - 1 : -1;
  ascii_.assign(kByteValues, unknown_);
  for (Index id = 0; id < std::ssize(values_); ++id) {
    const std::string& value = at(values_, id);
    if (value.size() == 1) at(ascii_, static_cast<unsigned char>(value.front())) = id;
    numbers_.emplace(value, id);
  }
}

Vocabulary Vocabulary::of_ids(Index size) {
  Vocabulary vocabulary({.kind = TokenKind::kIds}, {});
  vocabulary.size_ = size;
  return vocabulary;
}

Vocabulary::Vocabulary(const std::string& schema) : Vocabulary(TokenRule{}, {}) {
  try {
    const Json json = parse_json<Json>(schema);
    const auto kind = std::ranges::find(kKinds, json.at("tokens").get<std::string>());
    if (kind == kKinds.end()) throw DataError("its kind of tokens is not known");
    const TokenRule rule{.kind = static_cast<TokenKind>(kind - kKinds.begin()),
                         .replaces = json.at("unknown").get<std::string>() == "replace"};
    *this = rule.kind == TokenKind::kIds
                ? of_ids(whole_number(json.at("size")))
                : Vocabulary(rule, json.at("values").get<std::vector<std::string>>());
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("the schema of the model is no vocabulary: {}", error.what()));
  }
}

std::string Vocabulary::schema() const {
  return indented(Json{{"format", "text"},
                       {"tokens", to_string(rule_.kind)},
                       {"unknown", rule_.replaces ? "replace" : "refuse"},
                       {"size", size_},
                       {"values", values_}});
}

std::vector<Index> Vocabulary::encode(std::string_view text, const std::string& name) const {
  if (rule_.kind == TokenKind::kIds)
    throw ConfigError("the model was trained on numbers (data.tokens = \"ids\"), for which no text is known");
  std::vector<Index> ids;
  std::size_t begin = 0;
  const auto fail = [&](const std::string& problem) {
    throw DataError(fmt::format("{}, byte {}: {}", name, with_commas(static_cast<Index>(begin)), problem));
  };
  while (begin < text.size()) {
    const std::size_t length = token_length(rule_.kind, text.substr(begin));
    if (length == 0) fail(describe_no_text(text.substr(begin)));
    const std::string_view token = text.substr(begin, length);
    ids.push_back(find(token));
    if (ids.back() < 0) fail(describe_unknown(*this, token));
    begin += length;
  }
  return ids;
}

std::string Vocabulary::decode(std::span<const Index> ids) const {
  std::string text;
  for (const Index id : ids) {
    if (rule_.kind == TokenKind::kIds) {
      text += fmt::format("{}{}", text.empty() ? "" : " ", id);
    } else if (rule_.kind == TokenKind::kBytes) {
      text += static_cast<char>(id);
    } else {
      text += id < std::ssize(values_) ? at(values_, id) : kStandIn;
    }
  }
  return text;
}

double Vocabulary::characters(Index id) const {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  if (rule_.kind == TokenKind::kBytes) return begins(static_cast<char>(id)) ? 1 : 0;
  if (rule_.kind == TokenKind::kIds || id >= std::ssize(values_)) return 1;
  return static_cast<double>(std::ranges::count_if(at(values_, id), begins));
}

bool is_vocabulary(const std::string& schema) {
  if (schema.empty()) return false;
  const Json json = parse_json<Json>(schema);
  return json.is_object() && json.value("format", "") == "text";
}

std::vector<double> characters_of_tokens(const std::string& schema) {
  std::vector<double> characters;
  if (!is_vocabulary(schema)) return characters;
  const Vocabulary vocabulary(schema);
  for (Index id = 0; id < vocabulary.size(); ++id) characters.push_back(vocabulary.characters(id));
  return characters;
}

std::string describe_unknown(const Vocabulary& vocabulary, std::string_view token) {
  const bool word = vocabulary.kind() == TokenKind::kWords;
  return fmt::format(
      "the {} {} is none of the {} that the vocabulary has from training: take it out of the text, or train "
      "with data.unknown = \"replace\", which makes one more token for all such, or with data.tokens = "
      "\"bytes\"",
      word ? "word" : "character", in_quotes(token), with_commas(vocabulary.size()));
}

std::string describe_no_text(std::string_view text) {
  return fmt::format(
      "found {}, expected UTF-8: convert the file, as with iconv -f latin1 -t utf-8, or take any bytes by "
      "data.tokens = \"bytes\"",
      in_quotes(text.substr(0, 1)));
}

}  // namespace lockstep
