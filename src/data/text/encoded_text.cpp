#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/message.h"
#include "token_file.h"

namespace lockstep {
namespace {

// The last tokens of the stream, those of the test set behind those of the validation set.
void divide(Index size, const DataParts& parts, EncodedText& text) {
  const auto cut = [](Index end, double share) {
    return static_cast<Index>(std::floor(static_cast<double>(end) * (1 - share)));
  };
  const Index tested = parts.test ? cut(size, parts.test->share) : size;
  const Index held = parts.validation ? cut(tested, parts.validation->share) : tested;
  text.train = {0, held};
  text.validation = {held, tested};
  text.test = {tested, size};
}

void refuse_part_of_text(const std::optional<ValidationPart>& part) {
  if (!part || (part->by == ValidationPart::By::kRecord && part->folds == 0)) return;
  throw ConfigError("{}: of a text its last tokens are held back: share(0.1), or other files", part->setting);
}

TokenInput open_token_input(const DataOptions& data, const EncodedText& text) {
  TokenInput input{
      .rule = parse_token_rule(data.text.tokens, data.text.unknown), .files = text.paths, .name = text.name};
  if (input.rule.kind != TokenKind::kIds) return input;
  const std::string list = fmt::format("{}", fmt::join(text.paths, ","));
  input.numbers =
      choose_format(data).open({.options = data, .peers = alone(), .input = list, .numbers = true});
  return input;
}

// Errors: ConfigError where the options ask for another vocabulary than the run has.
void check_rule(const DataOptions& data, const Vocabulary& vocabulary) {
  const TokenRule asked = parse_token_rule(data.text.tokens, data.text.unknown);
  const TokenKind kind = vocabulary.kind();
  const bool names_values = kind == TokenKind::kCharacters || kind == TokenKind::kWords;
  if (asked.kind == kind && (!names_values || asked.replaces == vocabulary.replaces())) return;
  throw ConfigError(
      "data.tokens = \"{}\" and data.unknown = \"{}\" make another vocabulary than that of the run, which "
      "has {}{}: leave them as they were",
      data.text.tokens, data.text.unknown, to_string(kind),
      !names_values           ? ""
      : vocabulary.replaces() ? " and replaces those that are unknown"
                              : " and refuses those that are unknown");
}

// `checks`: whether they are those that were written, too.
std::shared_ptr<const TokenFile> open_tokens(const std::string& path, bool checks) {
  auto tokens = TokenFile::open(path);
  if (tokens && (!checks || tokens->is_sound())) return tokens;
  throw DataError(
      "'{}', the encoded text, cannot be read, or is not as it was written: all nodes need it: name a "
      "directory that they share in data.token_cache",
      path);
}

}  // namespace

EncodedText encode_text(const DataOptions& data, const std::string& text, const std::string& key,
                        const DataParts& parts, std::shared_ptr<const Vocabulary> vocabulary,
                        PeerGroup& peers) {
  EncodedText encoded{.name = text, .vocabulary = std::move(vocabulary)};
  peers.agree([&] {
    refuse_part_of_text(parts.validation);
    refuse_part_of_text(parts.test);
    if (encoded.vocabulary) check_rule(data, *encoded.vocabulary);
    encoded.paths = list_files(text, choose_format(data).extensions, key);
  });
  // The path, and the schema if others have to learn it.
  const auto found = from_first_rank<std::vector<std::string>>(peers, [&] {
    const TokenInput input = open_token_input(data, encoded);
    std::string schema;
    if (!encoded.vocabulary) {
      encoded.train.end = std::numeric_limits<Index>::max();
      if (parts.any()) divide(count_tokens(input), parts, encoded);
      encoded.vocabulary = std::make_shared<const Vocabulary>(learn_vocabulary(input, encoded.train.end));
      if (peers.size() > 1) schema = encoded.vocabulary->schema();
    }
    const std::string directory =
        data.text.cache.empty() ? std::filesystem::temp_directory_path().string() : data.text.cache;
    const bool is_empty = encoded.vocabulary->size() == 0;
    const std::string path = is_empty ? "" : encode_tokens(input, *encoded.vocabulary, directory);
    if (is_empty || open_tokens(path, false)->size() == 0)
      throw DataError("{} names '{}', which is empty: expected a text", key, text);
    return std::vector{path, schema};
  });
  const auto of_node = peers.share_on_node(1);  // tells who is the first of a node
  const bool checks = peers.rank() > 0 && peers.writes_for_node(peers.rank());
  peers.agree([&] {
    if (!encoded.vocabulary) encoded.vocabulary = std::make_shared<const Vocabulary>(found[1]);
    encoded.path = found[0];
    encoded.tokens = open_tokens(found[0], checks);
    divide(encoded.tokens->size(), parts, encoded);
  });
  return encoded;
}

}  // namespace lockstep
