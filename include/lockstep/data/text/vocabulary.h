// Tokens: how a text is cut into them, and the numbers that stand for them. The vocabulary of a run is its
// schema.json.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/base/types.h"

namespace lockstep {

/// kWords: a run of letters, digits and characters beyond ASCII, with one blank before it if there is one, is
/// a token, and so is any other character; what is longer than 64 bytes is cut. kPieces: parts of runs, each
/// a byte or what training has often; a run has letters, digits, marks or blanks alone, with one blank
/// before. All tokens one behind the other are the text. kIds: the numbers of an array.
enum class TokenKind { kBytes, kCharacters, kWords, kPieces, kIds };

struct TokenRule {
  TokenKind kind = TokenKind::kCharacters;
  Index max_values = 0;   ///< kWords: the most frequent that have a number; kPieces: all, with the 256 bytes
  bool replaces = false;  ///< one more token, the last, stands for all that are not known
};

/// data.tokens and data.unknown. Errors: ConfigError.
TokenRule parse_token_rule(const std::string& tokens, const std::string& unknown);

/// "bytes", "characters", "words", "pieces", "ids".
std::string to_string(TokenKind kind);

/// More bytes than any token has.
inline constexpr std::size_t kTokenBytes = 80;

/// Bytes of the token, or of the run of pieces, that a text, which is not empty, starts with; 0: it is no
/// UTF-8 there. Requires that the text goes on for kTokenBytes, or to its end. Of kIds: up to a blank.
std::size_t token_length(TokenKind kind, std::string_view text);

class Vocabulary {
 public:
  /// `values`: the tokens in order of their numbers, of characters, words and pieces.
  Vocabulary(TokenRule rule, std::vector<std::string> values);
  /// Numbers below `size`.
  static Vocabulary of_ids(Index size);
  /// Reads a schema. Errors: DataError.
  explicit Vocabulary(const std::string& schema);

  std::string schema() const;
  /// The number of tokens, with the one that stands for others.
  Index size() const { return size_; }
  TokenKind kind() const { return rule_.kind; }
  /// Whether its last token stands for all that are not known.
  bool replaces() const { return unknown_ >= 0; }
  /// The number of a token; -1: it is not known, and nothing stands for it.
  Index find(std::string_view token) const {
    if (rule_.kind == TokenKind::kBytes) return static_cast<unsigned char>(token.front());
    if (token.size() == 1) return ascii_[static_cast<unsigned char>(token.front())];
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? unknown_ : found->second;
  }
  /// Adds the numbers of what token_length() has cut: one, or those of a run's pieces. False: it is not
  /// known, and nothing stands for it.
  bool add(std::string_view token, std::vector<Index>& ids) const;
  /// The numbers of a text's tokens. Errors: DataError naming the character and byte of `name` and what
  /// stands there. Of ids the text is their numbers with blanks between.
  std::vector<Index> encode(std::string_view text, const std::string& name = "the text") const;
  /// The text of tokens, U+FFFD for the one that stands for others; of numbers, these with blanks between.
  std::string decode(std::span<const Index> ids) const;
  /// Characters of a token. Of bytes those that begin one in UTF-8 have 1, so that the sum is that of the
  /// text.
  double characters(Index id) const;
  /// The characters of each token.
  std::vector<double> characters() const;

 private:
  TokenRule rule_;
  std::vector<std::string> values_;
  Index size_ = 0;
  Index unknown_ = -1;
  std::vector<Index> ascii_;  // of each byte as a token
  std::unordered_map<std::string, Index, TextHash, std::equal_to<>> numbers_;
};

/// None from "" and from the schema of other data. Errors: DataError.
std::optional<Vocabulary> read_vocabulary(const std::string& schema);

/// Why a token has no number: "the character 'e' is none of the 64 that training has seen: ...".
std::string describe_unknown(const Vocabulary& vocabulary, std::string_view token);
/// The first byte that is no UTF-8, of a text where token_length() is 0.
std::size_t find_no_text(std::string_view text);
/// Why it is none there.
std::string describe_no_text(std::string_view text);

}  // namespace lockstep
