// Writes IDX files, good ones and, byte by byte, bad ones.
#pragma once

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"
#include "support/common.h"

namespace lockstep::test {

enum class IdxType : std::uint8_t {
  kU8 = 0x08,
  kI8 = 0x09,
  kI16 = 0x0B,
  kI32 = 0x0C,
  kF32 = 0x0D,
  kF64 = 0x0E
};

/// The header of an IDX file with these dimensions.
std::string idx_header(IdxType type, const std::vector<Index>& sizes);
/// A whole IDX file; `values` in row-major order.
std::string idx_content(IdxType type, const std::vector<Index>& sizes, const std::vector<double>& values);

/// `content` packed as gzip does it.
std::string gzipped(const std::string& content);
/// Writes `content`, packed if the name ends in ".gz".
void write_idx(const std::string& path, const std::string& content);

/// Writes `rows` records of random bytes to PATH_STEM-images-idx-ubyte[.gz] and random labels below `classes`
/// to PATH_STEM-labels-idx1-ubyte[.gz].
struct IdxPair {
  std::string images;
  std::string labels;
};
struct IdxPairOptions {
  Index rows = 10;
  Shape shape = {{4, 3}};
  Index classes = 10;
  bool compressed = true;
  std::uint64_t seed = 1;
};
IdxPair write_idx_pair(const std::string& path_stem, const IdxPairOptions& options);

}  // namespace lockstep::test
