// Whole files: read at once, or written so that a reader sees the old file or the new one and never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/types.h"

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

// Checks and removals for callers to whom it does not matter why these fail.

/// Whether something has that name. False if that cannot be looked at.
bool is_there(const std::filesystem::path& path);
/// Removes a file or an empty directory, if there is one.
void remove_if_there(const std::filesystem::path& path);

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

// Files that are written piece by piece: ones that a reader sees whole or not at all, and ones of several
// writers.

/// Makes renames and removals in a directory survive a crash, as far as the file system can and the directory
/// may be read. Errors: DataError with the path and the system's reason.
void sync_directory(const std::filesystem::path& directory);

/// Makes what was written to a file survive a crash. Does nothing if there is no such file. Errors: DataError
/// with the path and the system's reason.
void sync_file(const std::filesystem::path& path);

/// Makes a directory, and those above it that are not there. They survive a crash, also one that was there
/// already, as somebody may just have made it. Returns whether there was none. Errors: DataError as above;
/// `error` if it cannot be made.
bool create_synced_directories(const std::filesystem::path& path, std::error_code& error);

/// Writes all of it to an open file, however many calls that takes. False, with errno, where it cannot.
bool write_all(int descriptor, std::string_view bytes);

enum class Appended {
  kWhole,
  kNothing,  ///< the part that was written was cut off again; errno is the reason
  kPart,     ///< a part is left, as cutting it off failed, too; errno is why writing failed
};

/// Appends all of `bytes` to an open file of `size` bytes, or nothing of them.
Appended append_whole(int descriptor, std::int64_t size, std::string_view bytes);

/// Writes from byte `offset` of a file on, which is made if there is none, and syncs it. Several processes
/// may write one file, each its part. A symbolic link of that name is not followed. Errors: DataError with
/// the path and the system's reason.
void write_part(const std::filesystem::path& path, std::int64_t offset, std::string_view bytes);

/// Opens a file to write behind its end, and makes it if there is none. `flags`: more of open(). A symbolic
/// link of that name is refused, as it may lead to a file of somebody else, and so is what is no regular
/// file. Errors: DataError with the path and the reason.
int open_to_append(const std::filesystem::path& path, int flags = 0);

class AtomicFile : NoCopy {
 public:
  /// Makes a file in the directory of `path`, without a name, so that it is gone with this process whatever
  /// ends it; where the file system has no such files, under the name of `path` with ".partial-" and random
  /// digits behind it. Errors, of every call: DataError with the path and the system's reason; an older file
  /// of that name is then still whole. Also if `path` is a device, a FIFO or a socket: they are never
  /// replaced. A symbolic link is: see OutputFile for one that is to be followed.
  explicit AtomicFile(const std::filesystem::path& path);
  /// Removes what was not committed.
  ~AtomicFile();

  void write(std::string_view bytes);
  /// Syncs the file, gives it its name, and syncs the directory. Nothing may be written afterwards.
  void commit();

 private:
  void give_name();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty while the file has no name
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace lockstep
