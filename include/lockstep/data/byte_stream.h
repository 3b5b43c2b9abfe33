// The bytes of a file from front to back; a gzip file is unpacked on the way, any other is read as it is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "lockstep/base/types.h"

struct gzFile_s;

namespace lockstep {

class ByteStream {
 public:
  /// Errors: DataError if the file cannot be opened or is a directory.
  explicit ByteStream(const std::string& path);

  /// Size on disk in bytes.
  Index file_bytes() const { return file_bytes_; }
  bool compressed() const { return compressed_; }
  /// No more than this many bytes can come out, so that a header can be doubted before memory is taken for
  /// it.
  Index most_bytes() const;

  /// Fills `bytes` from the front and returns how many bytes that were: fewer only at the end of the data.
  /// Errors: DataError if the file cannot be read or a check sum is wrong.
  Index read(std::span<std::byte> bytes);

  /// The next read() starts at this byte of the data. Backwards in a compressed file means from its start.
  /// Errors: DataError.
  void go_to(Index position);

  /// Once read() came to the end: " (the gzip stream is cut off)" if that was the middle of a compressed
  /// stream, else "".
  std::string cut_off() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::string path_;
  Index file_bytes_ = 0;
  Index position_ = 0;
  bool compressed_ = false;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace lockstep
