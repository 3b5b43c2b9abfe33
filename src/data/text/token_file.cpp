// A file of tokens is the tokens, and behind them a footer that says how many there are: it is written from
// its front, before the end of the text is known.
#include "token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/loading/load_records.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr Index kTextBlock = Index{1} << 20;
constexpr Index kMaxIds = Index{1} << 24;  // single precision holds every smaller whole number
constexpr std::uint64_t kMagic = 0x31'6e'6b'74'6b'63'6f'6c;  // "locktkn1"

struct Footer {
  std::uint64_t magic = kMagic;
  std::int64_t width = 2;  // bytes of a token
  std::int64_t size = 0;   // tokens
  std::uint64_t hash = 0;
};

struct TextPlace {
  const std::string& file;
  Index byte;

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError("'{}', byte {} (counted from 0): {}", file, with_commas(byte), problem);
  }
};

// Calls use(token, place) for each token of a file, until that is false.
template <class Use>
bool visit_file(const std::string& file, TokenKind kind, const Use& use) {
  ByteStream stream(file);
  std::vector<char> block(static_cast<std::size_t>(kTextBlock) + kTokenBytes);
  std::size_t kept = 0;  // bytes of the block before that are still to be cut
  Index first = 0;       // the place of the block in the text
  for (bool last = false; !last;) {
    throw_if_stopped();
    const auto room = std::as_writable_bytes(std::span(block).subspan(kept));
    const auto got = static_cast<std::size_t>(stream.read(room));
    last = got < room.size();
    const std::string_view text(block.data(), kept + got);
    const bool marked = first == 0 && kept == 0 && kind != TokenKind::kBytes;
    if (marked && (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")))
      TextPlace{file, 0}.fail(describe_no_text(text));
    std::size_t begin = marked && text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a mark of UTF-8 is no text
    while (begin < text.size() && (last || text.size() - begin >= kTokenBytes)) {
      const std::string_view rest = text.substr(begin);
      const TextPlace place{file, first + static_cast<Index>(begin)};
      const bool single = kind <= TokenKind::kCharacters && static_cast<signed char>(rest.front()) >= 0;
      const std::size_t length = single ? 1 : token_length(kind, rest);
      if (length == 0) place.fail(describe_no_text(rest));
      if (!use(rest.substr(0, length), place)) return false;
      begin += length;
    }
    kept = text.size() - begin;
    std::memmove(block.data(), block.data() + begin, kept);
    first += static_cast<Index>(begin);
  }
  const std::string cut = stream.cut_off();
  if (!cut.empty()) throw DataError("'{}' is truncated{}", file, cut);
  return true;
}

template <class Use>
void visit_texts(const TokenInput& input, const Use& use) {
  for (const std::string& file : input.files) {
    if (!visit_file(file, input.rule.kind, use)) return;
  }
}

// Calls use(id, number) for each number of the array.
template <class Use>
void visit_numbers(const TokenInput& input, const Use& use) {
  const double scale = input.numbers->info().record_bytes == 1 ? 255 : 1;  // bytes are read as shares of 255
  Index record = 0;
  for_each_record(
      *input.numbers, {.anything = true}, alone(), [&](std::span<const Scalar> x, std::span<const Scalar>) {
        const double number = scale * static_cast<double>(x.front());
        const auto id = static_cast<Index>(std::lround(number));
        const bool whole = scale > 1 || number == static_cast<double>(id);
        if (!whole || id < 0 || id >= kMaxIds) {
          throw DataError("'{}', record {}: found {}, expected the number of a token, from 0 to {}",
                          input.name, with_commas(record), number, with_commas(kMaxIds - 1));
        }
        use(id, record);
        ++record;
      });
}

std::vector<std::string> by_count(const std::unordered_map<std::string, Index>& counts, Index most) {
  std::vector<std::pair<Index, std::string>> order;
  order.reserve(counts.size());
  for (const auto& [word, count] : counts) order.emplace_back(-count, word);
  std::ranges::sort(order);
  std::vector<std::string> words;
  for (Index i = 0; i < std::min(most, std::ssize(order)); ++i) words.push_back(at(order, i).second);
  return words;
}

// Most of the different words of a text come once. Where all of them would take too much memory, the rare
// ones so far are forgotten: which these are follows from the text alone.
constexpr Index kMaxCounted = 1'000'000;

// The file of tokens as it grows.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, Index vocabulary) : file_(path) {
    footer_.width = vocabulary <= Index{1} << 16 ? 2 : 4;
    block_.reserve(static_cast<std::size_t>(kTextBlock));
  }
  void add(Index id) {
    const auto number = static_cast<std::uint32_t>(id);  // of little endian, as all that Lockstep runs on
    block_.append(reinterpret_cast<const char*>(&number), static_cast<std::size_t>(footer_.width));
    ++footer_.size;
    if (std::ssize(block_) == kTextBlock) flush();
  }
  void commit() {
    flush();
    file_.write({reinterpret_cast<const char*>(&footer_), sizeof footer_});
    file_.commit();
  }

 private:
  void flush() {
    footer_.hash = mix_bits(footer_.hash ^ hash_text(block_));
    file_.write(block_);
    block_.clear();
  }

  AtomicFile file_;
  Footer footer_;
  std::string block_;
};

std::string name_of(const TokenInput& input, const Vocabulary& vocabulary) {
  std::string key = vocabulary.schema();
  for (const std::string& file : input.files) {
    const std::string path = split_array_path(file).file;
    std::error_code error;
    const std::string whole_path = fs::absolute(path, error).string();
    const auto time = error ? fs::file_time_type() : fs::last_write_time(path, error);
    if (error) throw DataError("'{}': {}", path, error.message());
    key +=
        fmt::format("{}\n{}\n{}\n{}\n", whole_path, file, file_bytes(path), time.time_since_epoch().count());
  }
  std::string stem = fs::path(split_array_path(input.files.front()).file).filename().string();
  stem = stem.substr(0, std::min<std::size_t>(stem.find('.', 1), 40));
  return fmt::format("{}-{:016x}.tokens", stem, hash_text(key));
}

void write_tokens(const TokenInput& input, const Vocabulary& vocabulary, const std::string& path) {
  TokenWriter writer(path, vocabulary.size());
  if (input.numbers) {
    visit_numbers(input, [&](Index id, Index record) {
      if (id >= vocabulary.size()) {
        throw DataError(
            "'{}', record {}: found the token {}, expected one below {}, the largest of training and 1",
            input.name, with_commas(record), id, with_commas(vocabulary.size()));
      }
      writer.add(id);
    });
  } else {
    std::vector<Index> ids;
    visit_texts(input, [&](std::string_view token, const TextPlace& place) {
      ids.clear();
      if (!vocabulary.add(token, ids)) place.fail(describe_unknown(vocabulary, token));
      for (const Index id : ids) writer.add(id);
      return true;
    });
  }
  writer.commit();
}

}  // namespace

Index count_tokens(const TokenInput& input) {
  if (input.numbers) return input.numbers->info().rows;
  Index tokens = 0;
  visit_texts(input, [&](std::string_view, const TextPlace&) {
    ++tokens;
    return true;
  });
  return tokens;
}

Vocabulary learn_vocabulary(const TokenInput& input, Index tokens) {
  const TokenKind kind = input.rule.kind;
  if (kind == TokenKind::kBytes) return {input.rule, {}};
  if (kind == TokenKind::kIds) {
    Index size = 0;
    visit_numbers(input,
                  [&](Index id, Index record) { size = record < tokens ? std::max(size, id + 1) : size; });
    return Vocabulary::of_ids(size);
  }
  std::array<Index, 256> ascii{};
  std::unordered_map<std::string, Index> counts;
  Index left = tokens;
  visit_texts(input, [&](std::string_view token, const TextPlace&) {
    if (left-- == 0) return false;
    if (token.size() == 1) {
      ++ascii[static_cast<unsigned char>(token.front())];
    } else {
      ++counts[std::string(token)];
      for (Index rare = 1, most = kMaxCounted; std::ssize(counts) > most; rare *= 2, most = kMaxCounted / 2)
        std::erase_if(counts, [rare](const auto& entry) { return entry.second <= rare; });
    }
    return true;
  });
  for (Index byte = 0; byte < 256; ++byte) {
    if (at(ascii, byte) > 0) counts[std::string(1, static_cast<char>(byte))] = at(ascii, byte);
  }
  if (kind == TokenKind::kPieces) return {input.rule, learn_pieces(counts, input.rule.max_values)};
  std::vector<std::string> values =
      by_count(counts, kind == TokenKind::kWords ? input.rule.max_values : std::ssize(counts));
  if (kind == TokenKind::kCharacters) std::ranges::sort(values);  // UTF-8 is in the order of code points
  return {input.rule, std::move(values)};
}

std::string encode_tokens(const TokenInput& input, const Vocabulary& vocabulary,
                          const std::string& directory) {
  const std::string path = (fs::path(directory) / name_of(input, vocabulary)).string();
  if (TokenFile::open(path)) return path;
  std::error_code error;
  create_synced_directories(directory, error);
  if (error) {
    throw DataError("cannot make the directory '{}' for encoded texts: {}; name another in data.token_cache",
                    directory, error.message());
  }
  write_tokens(input, vocabulary, path);
  return path;
}

void TokenFile::Unmap::operator()(void* memory) const {
  munmap(memory, bytes);
}

std::optional<TokenFile> TokenFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const Index bytes = lseek(descriptor, 0, SEEK_END);
  const Index begin = bytes - Index{sizeof(Footer)};
  Footer footer{.magic = 0};
  const bool is_whole = begin >= 0 &&
                        pread(descriptor, &footer, sizeof footer, begin) == ssize_t{sizeof footer} &&
                        footer.magic == kMagic && footer.size * footer.width == begin;
  const auto length = static_cast<std::size_t>(bytes);
  void* const memory = is_whole ? mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  close(descriptor);
  if (memory == MAP_FAILED) return std::nullopt;
  TokenFile file;
  file.memory_ = {memory, Unmap{length}};
  file.size_ = footer.size;
  file.width_ = footer.width;
  file.hash_ = footer.hash;
  return file;
}

}  // namespace lockstep
