#include "lockstep/data/text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 5> kKinds{"bytes", "characters", "words", "pieces", "ids"};
constexpr std::size_t kWordBytes = 64;
constexpr Index kByteValues = 256;
constexpr Index kMaxValues = 500'000;
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

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

enum class RunKind { kBlanks, kLetters, kDigits, kMarks };

RunKind run_kind(char c) {
  if (is_space(c)) return RunKind::kBlanks;
  if (c >= '0' && c <= '9') return RunKind::kDigits;
  return in_word(c) ? RunKind::kLetters : RunKind::kMarks;
}

// Blanks leave their last one to the run behind them.
std::size_t run_length(std::string_view text) {
  std::size_t length = text.size() > 1 && text[0] == ' ' && run_kind(text[1]) != RunKind::kBlanks ? 1 : 0;
  const RunKind kind = run_kind(text[length]);
  const std::size_t longest = std::min(text.size(), kWordBytes);
  while (length < longest && run_kind(text[length]) == kind) ++length;
  if (length == text.size()) return length;
  while (length > kWordBytes - 3 && !begins_character(text[length])) --length;
  const bool leaves_one = kind == RunKind::kBlanks && length > 1 && text[length - 1] == ' ' &&
                          run_kind(text[length]) != RunKind::kBlanks;
  return leaves_one ? length - 1 : length;
}

// Bytes as JSON can hold them: each as the character of its number.
std::string to_characters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
    text += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
  }
  return text;
}

std::string to_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool two = static_cast<signed char>(text[i]) < 0 && i + 1 < text.size();
    bytes += two ? static_cast<char>(text[i] << 6 | (text[i + 1] & 0x3f)) : text[i];
    i += two ? 1 : 0;
  }
  return bytes;
}

// The number in "words(20000)", if `name` stands before its parentheses; else 0.
Index count_in(const std::string& tokens, const std::string& name) {
  if (!tokens.starts_with(name + "(") || !tokens.ends_with(')')) return 0;
  const std::size_t begin = name.size() + 1;
  return number_in<Index>(std::string_view(tokens).substr(begin, tokens.size() - 1 - begin)).value_or(0);
}

Vocabulary vocabulary_of(const Json& json) {
  try {
    const auto kind = std::ranges::find(kKinds, json.at("tokens").get<std::string>());
    if (kind == kKinds.end()) throw DataError("its kind of tokens is not known");
    const TokenRule rule{.kind = static_cast<TokenKind>(kind - kKinds.begin()),
                         .replaces = json.at("unknown").get<std::string>() == "replace"};
    if (rule.kind == TokenKind::kIds) return Vocabulary::of_ids(whole_number(json.at("size")));
    auto values = json.at("values").get<std::vector<std::string>>();
    if (rule.kind == TokenKind::kPieces) std::ranges::transform(values, values.begin(), to_bytes);
    return {rule, std::move(values)};
  } catch (const nlohmann::json::exception& error) {
    throw DataError("the schema of the model is no vocabulary: {}", error.what());
  }
}

}  // namespace

TokenRule parse_token_rule(const std::string& tokens, const std::string& unknown) {
  const bool replaces = unknown == "replace";
  const Index words = count_in(tokens, "words");
  const Index pieces = count_in(tokens, "pieces");
  if (tokens == "bytes") return {.kind = TokenKind::kBytes};
  if (tokens == "characters") return {.kind = TokenKind::kCharacters, .replaces = replaces};
  if (tokens == "ids") return {.kind = TokenKind::kIds};
  if (words >= 1 && words <= kMaxValues)
    return {.kind = TokenKind::kWords, .max_values = words, .replaces = replaces};
  if (pieces > kByteValues && pieces <= kMaxValues) return {.kind = TokenKind::kPieces, .max_values = pieces};
  throw ConfigError(
      "data.tokens: found {}, expected bytes, characters, words(N) with N from 1 to {}, as in "
      "words(20000), pieces(N) with N from {} to {}, as in pieces(4096), or, of arrays, ids",
      in_quotes(tokens), with_commas(kMaxValues), kByteValues + 1, with_commas(kMaxValues));
}

std::string to_string(TokenKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::size_t token_length(TokenKind kind, std::string_view text) {
  if (kind == TokenKind::kBytes) return 1;
  if (kind == TokenKind::kPieces) return run_length(text);
  if (kind == TokenKind::kIds)
    return static_cast<std::size_t>(std::ranges::find_if(text, is_space) - text.begin());
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

Vocabulary::Vocabulary(const std::string& schema) : Vocabulary(vocabulary_of(parse_json<Json>(schema))) {}

std::string Vocabulary::schema() const {
  std::vector<std::string> values = values_;
  if (rule_.kind == TokenKind::kPieces) std::ranges::transform(values, values.begin(), to_characters);
  return indented(Json{{"format", "text"},
                       {"tokens", to_string(rule_.kind)},
                       {"unknown", rule_.replaces ? "replace" : "refuse"},
                       {"size", size_},
                       {"values", values}});
}

// Neighbours become one piece in the order in which training has learnt such pieces: lowest number first.
bool Vocabulary::add(std::string_view token, std::vector<Index>& ids) const {
  const Index found = rule_.kind == TokenKind::kIds ? number_in<Index>(token).value_or(-1) : find(token);
  const Index whole = found < size_ ? found : -1;
  if (whole >= 0) ids.push_back(whole);
  if (whole >= 0 || rule_.kind != TokenKind::kPieces) return whole >= 0;
  std::vector<std::string_view> pieces;
  for (std::size_t i = 0; i < token.size(); ++i) pieces.push_back(token.substr(i, 1));
  while (pieces.size() > 1) {
    Index lowest = size_;
    std::size_t first = 0;  // of the two
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const Index id = find({pieces[i].data(), pieces[i].size() + pieces[i + 1].size()});
      if (id < 0 || id >= lowest) continue;
      lowest = id;
      first = i;
    }
    if (lowest == size_) break;
    pieces[first] = {pieces[first].data(), pieces[first].size() + pieces[first + 1].size()};
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  }
  for (const std::string_view piece : pieces) ids.push_back(find(piece));
  return true;
}

std::vector<Index> Vocabulary::encode(std::string_view text, const std::string& name) const {
  std::vector<Index> ids;
  std::size_t begin = 0;
  const auto fail = [&](const std::string& problem) {
    throw DataError("{}, character {} (byte {} counted from 0): {}", name,
                    1 + std::ranges::count_if(text.substr(0, begin), begins_character), begin, problem);
  };
  while (begin < text.size()) {
    if (rule_.kind == TokenKind::kIds && is_space(text[begin])) {
      ++begin;
      continue;
    }
    const std::size_t length = token_length(rule_.kind, text.substr(begin));
    if (length == 0) {
      begin += find_no_text(text.substr(begin));
      fail(describe_no_text(text.substr(begin)));
    }
    const std::string_view token = text.substr(begin, length);
    if (!add(token, ids)) fail(describe_unknown(*this, token));
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
  if (rule_.kind == TokenKind::kBytes) return begins_character(static_cast<char>(id)) ? 1 : 0;
  if (rule_.kind == TokenKind::kIds || id >= std::ssize(values_)) return 1;
  return static_cast<double>(std::ranges::count_if(at(values_, id), begins_character));
}

std::vector<double> Vocabulary::characters() const {
  std::vector<double> all;
  for (Index id = 0; id < size_; ++id) all.push_back(characters(id));
  return all;
}

std::optional<Vocabulary> read_vocabulary(const std::string& schema) {
  if (schema.empty()) return std::nullopt;
  const Json json = parse_json<Json>(schema);
  if (!json.is_object() || !json.contains("format") || json["format"] != "text") return std::nullopt;
  return vocabulary_of(json);
}

std::string describe_unknown(const Vocabulary& vocabulary, std::string_view token) {
  if (vocabulary.kind() == TokenKind::kIds)
    return fmt::format("found {}, expected ids from 0 to {} with blanks between, as in \"12 7 9\"",
                       in_quotes(token), vocabulary.size() - 1);
  const bool word = vocabulary.kind() == TokenKind::kWords;
  return fmt::format(
      "the {} {} is none of the {} that the vocabulary has from training: take it out of the text, or train "
      "with data.unknown = \"replace\", which makes one more token for all such, or with data.tokens = "
      "\"pieces(4096)\"",
      word ? "word" : "character", in_quotes(token), with_commas(vocabulary.size()));
}

std::size_t find_no_text(std::string_view text) {
  std::size_t byte = 0;
  while (byte < text.size() && utf8_length(text.substr(byte)) > 0) byte += utf8_length(text.substr(byte));
  return byte;
}

std::string describe_no_text(std::string_view text) {
  const std::string_view wide = marked_encoding(text);
  return fmt::format(
      "found {}, expected UTF-8: {}convert the file, as with iconv -f {} -t UTF-8, or take any bytes by "
      "data.tokens = \"bytes\"",
      in_quotes(text.substr(0, wide.empty() ? 1 : 2)), wide.empty() ? "" : fmt::format("this is {}; ", wide),
      wide.empty() ? "latin1" : wide);
}

}  // namespace lockstep
