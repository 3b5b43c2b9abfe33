#include "lockstep/data/byte_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr unsigned kBufferBytes = 1u << 18;
// gzread counts in int.
constexpr Index kLargestRead = Index{1} << 30;
// Deflate packs at best 258 bytes into two bits (zlib's technical notes: 1032:1); the rest is room for the
// frame.
constexpr Index kMostUnpacked = 1032;

}  // namespace

void ByteStream::Close::operator()(gzFile_s* file) const {
  gzclose_r(file);
}

ByteStream::ByteStream(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path)) {
    throw DataError(fmt::format("cannot read '{}': it is a directory, expected a file", path));
  }
  errno = 0;
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) throw DataError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  file_bytes_ = lockstep::file_bytes(path);
  gzbuffer(file_.get(), kBufferBytes);
  compressed_ = gzdirect(file_.get()) == 0;
}

Index ByteStream::most_bytes() const {
  return compressed_ ? file_bytes_ * kMostUnpacked : file_bytes_;
}

Index ByteStream::read(std::span<std::byte> bytes) {
  Index done = 0;
  const auto wanted = static_cast<Index>(bytes.size());
  while (done < wanted) {
    const auto length = static_cast<unsigned>(std::min(wanted - done, kLargestRead));
    const int got = gzread(file_.get(), bytes.data() + done, length);
    if (got < 0) {
      int code = 0;
      const char* reason = gzerror(file_.get(), &code);
      throw DataError(fmt::format("'{}' is damaged after {} bytes of data: {}; fetch or make the file again",
                                  path_, with_commas(position_),
                                  code == Z_ERRNO ? std::strerror(errno) : reason));
    }
    done += got;
    position_ += got;
    if (static_cast<unsigned>(got) < length) break;
  }
  return done;
}

void ByteStream::go_to(Index position) {
  if (position == position_) return;
  if (gzseek(file_.get(), position, SEEK_SET) < 0) {
    throw DataError(fmt::format("cannot go to byte {} of '{}'", with_commas(position), path_));
  }
  position_ = position;
}

std::string ByteStream::cut_off() const {
  int code = Z_OK;
  gzerror(file_.get(), &code);
  return code == Z_BUF_ERROR ? " (the gzip stream is cut off)" : "";
}

}  // namespace lockstep
