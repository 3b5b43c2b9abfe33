#include "lockstep/base/file_kind.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"

namespace lockstep {

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

}  // namespace lockstep
