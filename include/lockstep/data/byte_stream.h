// The bytes of a file, or of an array in an .npz archive or an HDF5 file, from any position on; what is
// compressed is unpacked on the way.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// "data.npz:x" names the array x of an archive, "data.h5:x" that of an HDF5 file; any other path names a
/// file. `array` is empty for a file. "data.npy:age+hours" and "data.npz:x:age+hours" name fields of the
/// records of an array.
struct ArrayPath {
  std::string file;
  std::string array;
  std::string fields = {};

  std::vector<std::string> field_names() const;
  /// The text behind the file, ":x:age", or "".
  std::string inside() const;
};
ArrayPath split_array_path(const std::string& path);
/// Whether the file is of a kind that holds several arrays, by the end of its name.
bool holds_arrays(const std::string& file);
/// Names of the arrays of such a file. Errors: DataError; ConfigError if the build lacks the library for it.
std::vector<std::string> list_arrays(const std::string& file);

/// Whether a file that starts as gzip files do is unpacked.
enum class Packing { kDetect, kNone };

class ByteStream {
 public:
  /// Errors: DataError if the file cannot be opened or is a directory; ConfigError if the build lacks the
  /// library for it.
  /// `encoding`: of a text that is decoded to UTF-8, as iconv calls it; "": the bytes as they are.
  explicit ByteStream(const std::string& path, Packing packing = Packing::kDetect,
                      const std::string& encoding = "");
  ~ByteStream();

  /// Size on disk in bytes.
  Index file_bytes() const { return file_bytes_; }
  /// Positions are found from the start only, as what is read is unpacked or decoded.
  bool compressed() const;
  /// No more than this many bytes can come out, so that a header can be doubted before memory is taken for
  /// it.
  Index max_bytes() const;

  /// Fills `bytes` from the front and returns how many bytes that were: fewer only at the end of the data.
  /// Errors: DataError if the file cannot be read or a check sum is wrong.
  Index read(std::span<std::byte> bytes);

  /// The next read() starts at this byte of the data. Backwards in what is compressed means from its start.
  /// Errors: DataError.
  void go_to(Index position);

  /// Once read() came to the end: " (the gzip stream is cut off)" if that was the middle of a compressed
  /// stream, else "".
  std::string cut_off() const;

  /// How one kind of file is read.
  class Input;

 private:
  std::string path_;
  Index file_bytes_ = 0;
  Index position_ = 0;
  std::unique_ptr<Input> input_;
};

}  // namespace lockstep
