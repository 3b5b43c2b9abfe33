// Files that are written piece by piece: ones that a reader sees whole or not at all, and ones of several
// writers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace lockstep {

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

class AtomicFile {
 public:
  /// Makes a file beside `path`, under its name with ".partial-" and random digits behind it. Errors, of
  /// every call: DataError with the path and the system's reason; an older file of that name is then still
  /// whole. Also if `path` is a device, a FIFO or a socket: they are never replaced. A symbolic link is: see
  /// OutputFile for one that is to be followed.
  explicit AtomicFile(const std::filesystem::path& path);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// Syncs the file, gives it its name, and syncs the directory. Nothing may be written afterwards.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace lockstep
