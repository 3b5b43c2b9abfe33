// A file of tokens is the tokens, and behind them a footer that says how many there are: it is written from
// its front, before the end of the text is known.
#include "token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
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

// False if the file ends before.
bool read_at(int descriptor, Index offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return true;
}

// The hash of tokens whose blocks, of kTextBlock bytes but for the last, are added in order.
std::uint64_t add_block(std::uint64_t hash, std::string_view block) {
  return mix_bits(hash ^ hash_text(block));
}

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
    if (marked && !marked_encoding(text).empty()) TextPlace{file, 0}.fail(describe_no_text(text));
    std::size_t begin = marked && text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a mark of UTF-8 is no text
    while (begin < text.size() && (last || text.size() - begin >= kTokenBytes)) {
      const std::string_view rest = text.substr(begin);
      const TextPlace place{file, first + static_cast<Index>(begin)};
      const bool single = kind <= TokenKind::kCharacters && static_cast<signed char>(rest.front()) >= 0;
      const std::size_t length = single ? 1 : token_length(kind, rest);
      if (length == 0) {
        const std::size_t bad = find_no_text(rest);
        TextPlace{file, place.byte + static_cast<Index>(bad)}.fail(describe_no_text(rest.substr(bad)));
      }
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
    if (!block_.empty()) flush();
    file_.write({reinterpret_cast<const char*>(&footer_), sizeof footer_});
    file_.commit();
  }

 private:
  void flush() {
    footer_.hash = add_block(footer_.hash, block_);
    file_.write(block_);
    block_.clear();
  }

  AtomicFile file_;
  Footer footer_;
  std::string block_;
};

// Tells a file from another one in its place, whose size and time may be the same, as archives and rsync set
// times: by its inode, the time of its last change, and what stands in 64 blocks over it.
std::string describe_file(const std::string& path) {
  constexpr Index kBlocks = 64;
  std::string block(std::size_t{1} << 16, '\0');
  ByteStream stream(path, Packing::kNone);
  struct stat state {};
  if (stat(path.c_str(), &state) != 0) throw DataError("'{}': {}", path, std::strerror(errno));
  std::uint64_t hash = 0;
  for (Index i = 0; i < kBlocks; ++i) {
    stream.go_to(std::max<Index>(state.st_size - std::ssize(block), 0) / (kBlocks - 1) * i);
    const auto got = static_cast<std::size_t>(stream.read(std::as_writable_bytes(std::span(block))));
    hash = add_block(hash, std::string_view(block).substr(0, got));
  }
  return fmt::format("{} {} {}.{} {}.{} {:x}", state.st_size, state.st_ino, state.st_mtim.tv_sec,
                     state.st_mtim.tv_nsec, state.st_ctim.tv_sec, state.st_ctim.tv_nsec, hash);
}

std::string name_of(const TokenInput& input, const Vocabulary& vocabulary) {
  std::string key = vocabulary.schema();
  for (const std::string& file : input.files) {
    const std::string path = split_array_path(file).file;
    key += fmt::format("{}\n{}\n{}\n", fs::absolute(path).string(), file, describe_file(path));
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

Index count_characters(const std::vector<std::string>& files) {
  const Vocabulary bytes({.kind = TokenKind::kBytes}, {});
  double characters = 0;
  visit_texts({.rule = {.kind = TokenKind::kBytes}, .files = files}, [&](std::string_view byte, const auto&) {
    characters += bytes.characters(bytes.find(byte));
    return true;
  });
  return static_cast<Index>(characters);
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
  const auto found = TokenFile::open(path);
  if (found && found->size() > 0 && found->is_sound()) return path;
  std::error_code error;
  create_synced_directories(directory, error);
  if (error) {
    throw DataError("cannot make the directory '{}' for encoded texts: {}; name another in data.token_cache",
                    directory, error.message());
  }
  write_tokens(input, vocabulary, path);
  return path;
}

TokenFile::TokenFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}

TokenFile::~TokenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::shared_ptr<const TokenFile> TokenFile::open(const std::string& path) {
  const std::shared_ptr<TokenFile> file(new TokenFile(path));
  struct stat state {};
  if (file->descriptor_ < 0 || fstat(file->descriptor_, &state) != 0 || !S_ISREG(state.st_mode)) return {};
  Footer footer{.magic = 0};
  const Index bytes = state.st_size - Index{sizeof footer};
  if (bytes < 0 || !read_at(file->descriptor_, bytes, std::as_writable_bytes(std::span(&footer, 1))))
    return {};
  if (footer.magic != kMagic || (footer.width != 2 && footer.width != 4)) return {};
  if (bytes % footer.width != 0 || bytes / footer.width != footer.size) return {};
  file->size_ = footer.size;
  file->width_ = footer.width;
  file->hash_ = footer.hash;
  return file;
}

bool TokenFile::is_sound() const {
  std::string block;
  std::uint64_t hash = 0;
  for (Index begin = 0; begin < size_ * width_; begin += kTextBlock) {
    throw_if_stopped();
    block.resize(static_cast<std::size_t>(std::min(kTextBlock, size_ * width_ - begin)));
    if (!read_at(descriptor_, begin, std::as_writable_bytes(std::span(block)))) return false;
    hash = add_block(hash, block);
  }
  return hash == hash_;
}

void TokenFile::read(Index begin, std::span<Scalar> to) const {
  thread_local std::vector<std::byte> bytes;
  bytes.resize(to.size() * static_cast<std::size_t>(width_));
  if (!read_at(descriptor_, begin * width_, bytes)) {
    throw DataError(
        "'{}', the encoded text, has become shorter since it was opened: start again, and it is written anew",
        path_);
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint32_t id = 0;  // of little endian, as all that Lockstep runs on
    std::memcpy(&id, bytes.data() + i * static_cast<std::size_t>(width_), static_cast<std::size_t>(width_));
    to[i] = static_cast<Scalar>(id);
  }
}

}  // namespace lockstep
