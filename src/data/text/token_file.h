// The tokens of files as numbers of 16 or 32 bits, one behind the other in a file of which windows are read
// as they are needed: all processes of a node share the system's copy of it, which may drop any part. It is
// not mapped, as a mapped file that somebody cuts ends the process by a signal, and a read one in an error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/options.h"
#include "lockstep/data/parts/validation_split.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/text/vocabulary.h"

namespace lockstep {

/// Tokens to encode: files of text, or an array of numbers.
struct TokenInput {
  TokenRule rule;
  std::vector<std::string> files = {};
  std::unique_ptr<RecordSource> numbers = nullptr;  ///< the array, with kIds
  std::string name = {};                            ///< of the data, in messages
};

/// Tokens, or runs of pieces, in all files. Errors, also of the functions below: DataError with file, byte
/// and what stands there.
Index count_tokens(const TokenInput& input);

/// Characters in all files, those of tokens that have no number among them.
Index count_characters(const std::vector<std::string>& files);

/// The vocabulary of the first `tokens`, or of so many runs of pieces.
Vocabulary learn_vocabulary(const TokenInput& input, Index tokens);

/// The 256 bytes and the pieces of a byte-pair encoding of runs with their counts, at most so many.
std::vector<std::string> learn_pieces(const std::unordered_map<std::string, Index>& runs, Index max_pieces);

/// The path, in `directory`, of the tokens of the input: it is written, in one pass, if it is not there, or
/// is damaged. Its name follows from the vocabulary and from paths, sizes, times, inodes and blocks of the
/// files.
std::string encode_tokens(const TokenInput& input, const Vocabulary& vocabulary,
                          const std::string& directory);

class TokenFile : NoCopy {
 public:
  /// Null if the file is not there, is no regular file or is not whole.
  static std::shared_ptr<const TokenFile> open(const std::string& path);
  ~TokenFile();

  Index size() const { return size_; }
  /// Tells these tokens from others.
  std::uint64_t hash() const { return hash_; }
  /// Reads all of it. Whether the tokens are those that were written.
  bool is_sound() const;
  /// Reads these tokens, `to.size()` of them from `begin` on. Errors: DataError if the file is cut off.
  void read(Index begin, std::span<Scalar> to) const;

 private:
  explicit TokenFile(const std::string& path);

  std::string path_;
  int descriptor_;
  Index size_ = 0;
  Index width_ = 2;
  std::uint64_t hash_ = 0;
};

/// The tokens of some files. All ranks hold the same.
struct EncodedText {
  std::string name;
  std::vector<std::string> paths = {};
  std::shared_ptr<const Vocabulary> vocabulary = nullptr;
  std::string path = {};  ///< of the encoded file
  std::shared_ptr<const TokenFile> tokens = nullptr;
  /// The part of a training text that is trained on, and those held back behind it.
  Range train = {};
  Range validation = {};
  Range test = {};
};

/// *Collective.* `text`: what `key` says; `vocabulary`: null: it is learnt from the training part. Errors as
/// open_sets() has them.
EncodedText encode_text(const DataOptions& data, const std::string& text, const std::string& key,
                        const DataParts& parts, std::shared_ptr<const Vocabulary> vocabulary,
                        PeerGroup& peers);

}  // namespace lockstep
