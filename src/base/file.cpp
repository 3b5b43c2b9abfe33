#include "lockstep/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

[[noreturn]] void fail_on_path(const char* doing, const std::filesystem::path& path, int error = errno) {
  throw DataError("cannot {} '{}': {}", doing, path.string(), std::strerror(error));
}

// A rename would put a file over a device of the machine.
void refuse_to_replace_special(const std::filesystem::path& path) {
  using Type = std::filesystem::file_type;
  std::error_code ignored;
  const Type type = std::filesystem::symlink_status(path, ignored).type();
  if (type == Type::directory) return;  // the rename fails by itself
  const std::string kind = describe_special(type);
  if (kind.empty()) return;
  throw DataError("cannot replace '{}': it is {}, expected a regular file", path.string(), kind);
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::string link_of(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

// -1 if the file system has no files without a name, or such a file could not be given one.
int open_unnamed(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::access(link_of(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

// A name that nobody can foresee, so that no link to another file can stand there.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) fail_on_path("get a random name beside", path);
  std::filesystem::path name = path;
  name += fmt::format(".partial-{:012x}", number >> 16);
  return name;
}

// Syncs the directory that had this path when it was opened, whatever it is called since. One that may not
// be read is left alone.
class OpenDirectory : NoCopy {
 public:
  explicit OpenDirectory(std::filesystem::path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0 && errno != EACCES) fail_on_path("sync", path_);
  }
  ~OpenDirectory() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void sync() const {
    if (descriptor_ < 0 || ::fsync(descriptor_) == 0) return;
    if (errno != EINVAL && errno != ENOTSUP) fail_on_path("sync", path_);
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  check_regular_file(path);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw CannotOpenError("cannot open '{}': {}", path.string(), std::strerror(errno));
  // Unlike iterators over the buffer, which throws, read() makes a state of the stream of what goes wrong.
  std::string text;
  std::array<char, kBlockBytes> block;
  try {
    while (in.read(block.data(), block.size()) || in.gcount() > 0) {
      text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw ConfigError("'{}' does not fit into memory: it has more than {}", path.string(),
                      human_bytes(text.size()));
  }
  if (in.bad()) fail_on_path("read", path);
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
  error_if<CannotOpenError>(!!error, "cannot open '{}': {}", path.string(), error.message());
  return static_cast<std::int64_t>(bytes);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void remove_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

std::string describe_special(std::filesystem::file_type type) {
  using Type = std::filesystem::file_type;
  static const std::map<Type, std::string> kKinds{{Type::directory, "a directory"},
                                                  {Type::fifo, "a FIFO (named pipe)"},
                                                  {Type::socket, "a socket"},
                                                  {Type::character, "a character device"},
                                                  {Type::block, "a block device"}};
  const auto found = kKinds.find(type);
  return found == kKinds.end() ? "" : found->second;
}

void check_regular_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  const std::string kind = describe_special(type);
  if (kind.empty()) return;
  error_if<DataError>(type == std::filesystem::file_type::directory,
                      "cannot read '{}': it is a directory, expected a file", path.string());
  throw DataError("cannot read '{}': it is {}, expected a regular file; write its content to a file first",
                  path.string(), kind);
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

void sync_directory(const std::filesystem::path& directory) {
  OpenDirectory(directory).sync();
}

void sync_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return;
  if (descriptor < 0) fail_on_path("sync", path);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error != 0) fail_on_path("sync", path, error);
}

bool create_synced_directories(const std::filesystem::path& path, std::error_code& error) {
  std::vector<std::filesystem::path> changed;  // the directories that get a new one
  std::filesystem::path made = std::filesystem::absolute(path, error);
  if (!made.has_filename()) made = made.parent_path();
  for (bool there = false; !error && !there; made = made.parent_path()) {
    changed.push_back(made.parent_path());
    there = std::filesystem::exists(made, error);
  }
  if (error) return false;
  const bool is_new = std::filesystem::create_directories(path, error);
  if (error) return false;
  for (const std::filesystem::path& directory : changed) sync_directory(directory);
  return is_new;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Appended append_whole(int descriptor, std::int64_t size, std::string_view bytes) {
  if (write_all(descriptor, bytes)) return Appended::kWhole;
  const int error = errno;
  const bool cut = ::ftruncate(descriptor, size) == 0;
  errno = error;
  return cut ? Appended::kNothing : Appended::kPart;
}

void write_part(const std::filesystem::path& path, std::int64_t offset, std::string_view bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_on_path("create", path);
  const bool written = ::lseek(descriptor, offset, SEEK_SET) >= 0 && write_all(descriptor, bytes);
  const int error = written && ::fsync(descriptor) == 0 ? 0 : errno;
  if (::close(descriptor) != 0 || error != 0) fail_on_path("write", path, error != 0 ? error : errno);
}

int open_to_append(const std::filesystem::path& path, int flags) {
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(path, ignored).type();
  const std::string kind = type == fs::file_type::symlink ? "a symbolic link" : describe_special(type);
  if (!kind.empty()) {
    throw DataError("cannot write '{}': it is {}, expected a regular file; remove it", path.string(), kind);
  }
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
  if (descriptor < 0) fail_on_path("create", path);
  return descriptor;
}

// O_EXCL: a file or a link that stands under the name is never written to.
AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  refuse_to_replace_special(path_);
  descriptor_ = open_unnamed(directory_of(path_));
  if (descriptor_ >= 0) return;
  do {
    temporary_ = temporary_name(path_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail_on_path("create", path_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  if (!write_all(descriptor_, bytes)) fail_on_path("write", path_);
}

// A link cannot replace a file, and a rename can.
void AtomicFile::give_name() {
  if (!temporary_.empty()) return;
  std::filesystem::path name;
  do {
    name = temporary_name(path_);
    if (::linkat(AT_FDCWD, link_of(descriptor_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
  } while (errno == EEXIST);
  fail_on_path("name a finished file beside", path_);
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_on_path("sync", path_);
  give_name();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_on_path("close", path_);
  // Opened before: once others see the file they may rename its directory.
  const OpenDirectory directory(directory_of(path_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_on_path("rename a finished file to", path_);
  committed_ = true;
  directory.sync();
}

}  // namespace lockstep
