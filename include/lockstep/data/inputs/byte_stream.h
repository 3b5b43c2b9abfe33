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

// Which files a path in the config means: one, all of a directory, those that match a pattern, or a list.

/// The files that `text` names, in order: a file; a directory, whose files those are that end as one of
/// `extensions` (all, if none does), but for names that start with '.' or '_'; a pattern of the shell
/// ("part-*.bin", "data_batch_{1,2}.bin"); or several of these with commas between them. What a directory or
/// a pattern gives is sorted by name. ":x" after an archive stays at the end of each. A file with such a
/// name is always taken as itself. Errors: DataError that names `key`, the config key or flag that `text` is
/// from, if there is no such file.
std::vector<std::string> list_files(const std::string& text, std::span<const std::string> extensions,
                                    const std::string& key);

/// The name "-", which stands for standard input where records to predict from are read: ByteStream opens it
/// once spool_standard_input() has made a file of it.
bool is_standard_input(const std::string& name);

/// list_files() for the file to predict from (--input), which may be standard input.
std::vector<std::string> list_input_files(const std::string& text, std::span<const std::string> extensions);

}  // namespace lockstep
