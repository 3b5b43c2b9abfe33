// Whole files: read at once, or written so that a reader sees the old file or the new one and never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/errors.h"

namespace lockstep {

/// A file that cannot be opened now, by this process: which proves nothing about its content.
class CannotOpenError : public DataError {
 public:
  using DataError::DataError;
};

/// The whole text of a file. Errors: CannotOpenError with the path and the system's reason; DataError if it
/// is no regular file; ConfigError if it does not fit into memory.
std::string read_file(const std::filesystem::path& path);

/// Writes the parts one after the other to a temporary name beside `path`, syncs, and renames.
/// Errors: DataError with the path and the system's reason; the old file is then still whole.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Size in bytes. Errors: CannotOpenError if there is no such file.
std::int64_t file_bytes(const std::filesystem::path& path);

}  // namespace lockstep
