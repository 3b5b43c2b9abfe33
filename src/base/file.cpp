#include "lockstep/base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
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

std::string describe_special(std::filesystem::file_type type) {
  using Type = std::filesystem::file_type;
  switch (type) {
    case Type::directory:
      return "a directory";
    case Type::fifo:
      return "a FIFO (named pipe)";
    case Type::socket:
      return "a socket";
    case Type::character:
      return "a character device";
    case Type::block:
      return "a block device";
    default:
      return "";
  }
}

void check_regular_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  const std::string kind = describe_special(type);
  if (kind.empty()) return;
  if (type == std::filesystem::file_type::directory) {
    throw DataError(fmt::format("cannot read '{}': it is a directory, expected a file", path.string()));
  }
  throw DataError(
      fmt::format("cannot read '{}': it is {}, expected a regular file; write its content to a file first",
                  path.string(), kind));
}

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory, fs::file_type type) {
  std::vector<std::string> names;
  std::error_code unreadable;  // then there is nothing to name
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    if (entry.status(unreadable).type() == type) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string nearest_path(const fs::path& missing, fs::file_type type) {
  const fs::path path = missing.has_filename() ? missing : missing.parent_path();  // "runs/a" for "runs/a/"
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::string nearest = nearest_name(path.filename().string(), names_in(directory, type));
  return nearest.empty() ? "" : (path.parent_path() / nearest).string();
}

}  // namespace lockstep
