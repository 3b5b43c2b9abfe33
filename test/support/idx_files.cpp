#include "support/idx_files.h"

#include <zlib.h>

namespace lockstep::test {
namespace {

void append_big_endian(std::string& out, std::uint64_t bits, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(bits >> shift & 0xff));
}

void append_value(std::string& out, IdxType type, double value) {
  switch (type) {
    case IdxType::kU8:
    case IdxType::kI8:
      return append_big_endian(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 1);
    case IdxType::kI16:
      return append_big_endian(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 2);
    case IdxType::kI32:
      return append_big_endian(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 4);
    case IdxType::kF32:
      return append_big_endian(out, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
    case IdxType::kF64:
      return append_big_endian(out, std::bit_cast<std::uint64_t>(value), 8);
  }
}

}  // namespace

std::string idx_header(IdxType type, const std::vector<Index>& sizes) {
  std::string header{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const Index size : sizes) append_big_endian(header, static_cast<std::uint64_t>(size), 4);
  return header;
}

std::string idx_content(IdxType type, const std::vector<Index>& sizes, const std::vector<double>& values) {
  std::string content = idx_header(type, sizes);
  for (const double value : values) append_value(content, type, value);
  return content;
}

std::string gzipped(const std::string& content) {
  z_stream stream{};
  // 15 bits of window, and 16 for a gzip frame.
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, content.size()), '\0');
  std::string input = content;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate did not finish");
  return packed;
}

void write_idx(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << (path.ends_with(".gz") ? gzipped(content) : content);
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

IdxPair write_idx_pair(const std::string& path_stem, const IdxPairOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<double> pixels(static_cast<std::size_t>(options.rows * options.shape.size()));
  for (double& pixel : pixels) pixel = static_cast<double>(random() % 256);
  std::vector<double> labels(static_cast<std::size_t>(options.rows));
  for (double& label : labels)
    label = static_cast<double>(random() % static_cast<std::uint64_t>(options.classes));

  std::vector<Index> sizes = {options.rows};
  sizes.insert(sizes.end(), options.shape.dims.begin(), options.shape.dims.end());
  const std::string end = options.compressed ? "-ubyte.gz" : "-ubyte";
  IdxPair files{path_stem + "-images-idx" + end, path_stem + "-labels-idx1" + end};
  write_idx(files.images, idx_content(IdxType::kU8, sizes, pixels));
  write_idx(files.labels, idx_content(IdxType::kU8, {options.rows}, labels));
  return files;
}

}  // namespace lockstep::test
