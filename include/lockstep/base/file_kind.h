// The kind of file that a path leads to. Data, configs and models are read from regular files only: these can
// be read again, by several ranks at once, and from any byte on, and opening them does not wait for another
// program.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// "a FIFO (named pipe)", "a directory"; "" for a regular file.
std::string describe_special(std::filesystem::file_type type);

/// To be called before `path` is opened for reading. Errors: DataError if it is a directory, a FIFO, a device
/// or a socket. A path that does not exist, or cannot be looked at, passes: opening it gives the reason.
void check_regular_file(const std::filesystem::path& path);

}  // namespace lockstep
