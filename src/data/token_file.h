// The tokens of files as numbers of 16 or 32 bits, one behind the other in a file that is mapped into memory:
// all processes of a node share its pages, and the system may drop any of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/vocabulary.h"

namespace lockstep {

/// What is encoded: files of text, or an array of numbers.
struct TokenInput {
  TokenRule rule;
  std::vector<std::string> files = {};
  std::unique_ptr<RecordSource> numbers = nullptr;  ///< of kIds
  std::string name = {};                            ///< of the data, in messages
};

/// Tokens in all files. Errors, also of the functions below: DataError with file, byte and what stands there.
Index count_tokens(const TokenInput& input);

/// The vocabulary of the first `tokens`.
Vocabulary learn_vocabulary(const TokenInput& input, Index tokens);

/// The path, in `directory`, of the tokens of the input: it is written, in one pass, if it is not there. Its
/// name follows from the vocabulary and from paths, sizes and times of the files.
std::string encode_tokens(const TokenInput& input, const Vocabulary& vocabulary,
                          const std::string& directory);

class TokenFile {
 public:
  /// Errors: DataError.
  explicit TokenFile(const std::string& path);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  Index size() const { return size_; }
  /// Tells these tokens from others.
  std::uint64_t hash() const { return hash_; }
  Index bytes() const { return size_ * width_; }
  Index operator[](Index i) const {
    return width_ == 2 ? Index{static_cast<const std::uint16_t*>(memory_)[i]}
                       : Index{static_cast<const std::uint32_t*>(memory_)[i]};
  }

 private:
  void* memory_ = nullptr;
  Index length_ = 0;  // of the memory, in bytes
  Index size_ = 0;
  Index width_ = 2;
  std::uint64_t hash_ = 0;
};

}  // namespace lockstep
