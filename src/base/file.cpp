#include "lockstep/base/file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file_kind.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

std::string describe_failure(const char* doing, const std::filesystem::path& path) {
  return fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(errno));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  check_regular_file(path);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw CannotOpenError(describe_failure("open", path));
  // Unlike iterators over the buffer, which throws, read() makes a state of the stream of what goes wrong.
  std::string text;
  std::array<char, kBlockBytes> block;
  try {
    while (in.read(block.data(), block.size()) || in.gcount() > 0) {
      text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw ConfigError(fmt::format("'{}' does not fit into memory: it has more than {}", path.string(),
                                  human_bytes(text.size())));
  }
  if (in.bad()) throw DataError(describe_failure("read", path));
  return text;
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  AtomicFile file(path);
  for (const std::string_view part : parts) file.write(part);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::array parts{text};
  write_file_atomically(path, parts);
}

std::int64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) {
    throw CannotOpenError(fmt::format("cannot open '{}': {}", path.string(), error.message()));
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace lockstep
