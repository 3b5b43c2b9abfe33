// PNG (ISO/IEC 15948) with one IDAT chunk, 8 bits a sample, grey or RGB, no filters.
#include "picture.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "data:image/png;base64,";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void append_big_endian(std::string& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xffU);
}

const Bytef* as_bytes(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());  // NOLINT: zlib takes unsigned bytes
}

void append_chunk(std::string& png, const std::string& type, const std::string& data) {
  append_big_endian(png, static_cast<std::uint32_t>(data.size()));
  const std::string checked = type + data;
  png += checked;
  append_big_endian(
      png, static_cast<std::uint32_t>(crc32(0, as_bytes(checked), static_cast<uInt>(checked.size()))));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,  // NOLINT: as above
            as_bytes(bytes), static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
  packed.resize(size);
  return packed;
}

std::string base64(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[(group >> (18U - 6U * k)) & 63U];
  }
  return text;
}

// The rows of samples, each behind a byte that says "no filter".
std::string scanlines(std::span<const Scalar> pixels, const ImageShape& from, Index height, Index width,
                      Index channels) {
  const auto [least, greatest] = std::ranges::minmax(pixels);
  const bool unit = least >= 0 && greatest <= 1;
  const Scalar shift = unit ? 0 : least;
  const Scalar range = unit ? 1 : std::max(greatest - least, Scalar{1e-30F});
  std::string bytes;
  for (Index y = 0; y < height; ++y) {
    bytes += '\0';
    for (Index x = 0; x < width; ++x) {
      const Index first = (y * from.height / height * from.width + x * from.width / width) * from.channels;
      for (Index channel = 0; channel < channels; ++channel) {
        const Scalar share = (at(pixels, first + channel) - shift) / range;
        const Scalar level = std::isfinite(share) ? std::clamp(share, Scalar{0}, Scalar{1}) : 0;
        bytes += static_cast<char>(static_cast<unsigned char>(std::lround(255 * level)));
      }
    }
  }
  return bytes;
}

}  // namespace

std::string picture_uri(std::span<const Scalar> pixels, const ImageShape& shape) {
  constexpr Index kMinSide = 4;
  constexpr Index kMaxSide = 48;
  if (shape.height < kMinSide || shape.width < kMinSide || std::ssize(pixels) != shape.size()) return "";
  const Index longer = std::max({shape.height, shape.width, kMaxSide});
  const Index height = std::max<Index>(1, shape.height * kMaxSide / longer);
  const Index width = std::max<Index>(1, shape.width * kMaxSide / longer);
  const Index channels = shape.channels >= 3 ? 3 : 1;
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  header += {'\x08', static_cast<char>(channels == 3 ? 2 : 0), '\0', '\0', '\0'};
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", deflated(scanlines(pixels, shape, height, width, channels)));
  append_chunk(png, "IEND", "");
  return std::string(kPrefix) + base64(png);
}

bool is_picture_uri(std::string_view text) {
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  while (text.ends_with('=')) text.remove_suffix(1);
  return text.find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace lockstep
