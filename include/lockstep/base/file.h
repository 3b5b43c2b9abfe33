// Whole files: read at once, or written so that a reader sees the old file or the new one and never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The kind of file that a path leads to. Data, configs and models are read from regular files only: these can
// be read again, by several ranks at once, and from any byte on, and opening them does not wait for another
// program.

/// "a FIFO (named pipe)", "a directory"; "" for a regular file.
std::string describe_special(std::filesystem::file_type type);

/// To be called before `path` is opened for reading. Errors: DataError if it is a directory, a FIFO, a device
/// or a socket. A path that does not exist, or cannot be looked at, passes: opening it gives the reason.
void check_regular_file(const std::filesystem::path& path);

// Names in directories, for messages about a path that does not exist.

/// The names of the entries of that type, sorted; links count as what they lead to. Empty if the directory
/// cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& directory, std::filesystem::file_type type);

/// The path of that type beside `missing` whose name is nearest_name(), or "".
std::string nearest_path(const std::filesystem::path& missing, std::filesystem::file_type type);

}  // namespace lockstep
