// The kinds of files that a ByteStream reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/inputs/byte_stream.h"

namespace lockstep {

// Deflate packs at best 258 bytes into two bits (zlib's technical notes: 1032:1); the rest is a margin for
// the frame.
inline constexpr Index kMaxUnpacked = 1032;

class ByteStream::Input {
 public:
  virtual ~Input() = default;
  virtual bool compressed() const = 0;
  virtual Index max_bytes() const = 0;
  /// Bytes read, fewer than asked for only at the end; -1: failed, see reason().
  Index read(std::byte* bytes, Index count);
  virtual bool go_to(Index position) {
    position_ = position;
    return true;
  }
  virtual std::string reason() const = 0;
  virtual std::string cut_off() const { return ""; }

 protected:
  /// Reads so many of the next bytes or fewer; 0: the end; -1: failed.
  virtual Index read_some(std::byte* bytes, Index count) = 0;
  /// Reads on without keeping anything. False if that fails; the end of the data may come first.
  bool pass_over(Index count);

  Index position_ = 0;  // of the next byte
};

// Errors of all: DataError if the file cannot be opened; ConfigError if the build lacks the library for it.
std::unique_ptr<ByteStream::Input> open_plain(const std::string& path);
std::unique_ptr<ByteStream::Input> open_gzip(const std::string& path);
std::unique_ptr<ByteStream::Input> open_decoded(std::unique_ptr<ByteStream::Input> encoded,
                                                const std::string& encoding);
std::unique_ptr<ByteStream::Input> open_array(const ArrayPath& path);
/// The arrays of an archive.
std::vector<std::string> names_in_archive(const std::string& path);
std::unique_ptr<ByteStream::Input> open_hdf5(const ArrayPath& path);

}  // namespace lockstep
