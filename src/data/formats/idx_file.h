// One file in the IDX format of the MNIST data sets (Y. LeCun, "The MNIST database of handwritten digits").
//
//   file   = 0x00 0x00 type count size^count element*
//   type   = 0x08 u8 | 0x09 i8 | 0x0B i16 | 0x0C i32 | 0x0D f32 | 0x0E f64         one byte
//   count  = number of dimensions                                                 one byte
//   size   = length of one dimension, the first being the number of records       32 bits
//
// Everything is big endian, the elements are in row-major order. The file may be packed with gzip.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/byte_stream.h"

namespace lockstep {

/// The element type that is kept as bytes and scaled to [0, 1].
inline constexpr unsigned char kIdxU8 = 0x08;

struct IdxElement {
  unsigned char code;
  Index bytes;
  /// The scalars that `bytes` hold; as many as there is room for in `values`.
  void (*decode)(const std::byte* bytes, std::span<Scalar> values);
};

class IdxFile {
 public:
  /// Reads and checks the header. `key` is the config key that names the file, for messages.
  /// Errors: DataError.
  IdxFile(const std::string& path, const std::string& key);

  const std::string& path() const { return path_; }
  /// Sizes of all dimensions; the first is the number of records.
  const std::vector<Index>& sizes() const { return sizes_; }
  Index records() const { return sizes_.front(); }
  Index elements_per_record() const { return elements_per_record_; }
  const IdxElement& element() const { return *element_; }
  Index file_bytes() const { return file_bytes_; }

  /// Calls visit(number, bytes of the record) for each record in order. No more than a buffer is in memory.
  /// Errors: DataError if the file ends too early or too late, or is damaged.
  using Visit = std::function<void(Index record, const std::byte* bytes)>;
  void for_each_record(const Visit& visit) const;

 private:
  void read_header(ByteStream& stream);
  void compute_sizes();
  void check_size(const ByteStream& stream) const;
  Index header_bytes() const { return 4 + 4 * static_cast<Index>(sizes_.size()); }
  Index record_bytes() const { return elements_per_record_ * element_->bytes; }

  [[noreturn]] void fail_truncated(Index bytes_found, const std::string& note) const;
  [[noreturn]] void fail_surplus(const std::string& found) const;

  std::string path_;
  Index file_bytes_ = 0;
  const IdxElement* element_ = nullptr;
  std::vector<Index> sizes_;
  Index elements_per_record_ = 1;
  Index data_bytes_ = 0;
};

}  // namespace lockstep
