// A file layer that writes down what a trainer does to the files in one place: a library of its own, which
// tests load before all others (LD_PRELOAD) into each rank. Every call that changes something, or syncs it,
// is one entry of a log that all ranks share, with the bytes of writes, in the order in which the calls took
// effect: a lock is held around the call and its entry. See file_recording.h for the form of the log.
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "support/file_layer.h"

namespace {

using lockstep::test::mode_of;
using lockstep::test::path_at;
using lockstep::test::path_of;

// Read once: the program may change its environment.
std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}
const std::string& place() {
  static const std::string all = variable("LOCKSTEP_TEST_RECORDED");
  return all;
}
const std::string& log_name() {
  static const std::string all = variable("LOCKSTEP_TEST_RECORDING");
  return all;
}

// The place itself too, which may be synced.
bool is_recorded(const std::string& path) {
  return !place().empty() && (path + "/").starts_with(place()) && !path.ends_with(" (deleted)");
}

// By system calls, which are not recorded. Leaves errno as it is.
class Entry {
 public:
  Entry()
      : log_(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, log_name().c_str(),
                                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))) {
    ::flock(log_, LOCK_EX);
  }
  ~Entry() { ::syscall(SYS_close, log_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  void add(const char* kind, const std::string& path, const std::string& to = "", off_t offset = 0,
           std::string_view bytes = {}) const {
    const int before = errno;
    std::string text = std::string(kind) + " " + lockstep::test::rank_of_process() + " " +
                       std::to_string(offset) + " " + std::to_string(bytes.size()) + " " + path + "\t" + to +
                       "\n";
    text += bytes;
    if (::syscall(SYS_write, log_, text.data(), text.size()) != static_cast<long>(text.size())) ::abort();
    errno = before;
  }

 private:
  int log_;
};

// Files without a name (O_TMPFILE) that were synced since their last write. Nothing of them survives before
// they get a name: then they are made, written and synced at once.
std::mutex unnamed_mutex;
std::set<int> synced_unnamed;

void note_unnamed(int file, bool synced) {
  const std::lock_guard lock(unnamed_mutex);
  if (synced) {
    synced_unnamed.insert(file);
  } else {
    synced_unnamed.erase(file);
  }
}

std::string bytes_of(const char* link) {
  const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC));
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(file, 0, SEEK_END))), '\0');
  if (::pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) ::abort();
  ::syscall(SYS_close, file);
  return bytes;
}

// `open` opens it.
template <class Open>
int open_recorded(const std::string& path, int flags, const Open& open) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    const int file = open();
    note_unnamed(file, false);
    return file;
  }
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !is_recorded(path)) return open();
  const Entry entry;
  struct stat ignored {};
  const bool is_new = ::lstat(path.c_str(), &ignored) != 0;
  const int file = open();
  if (file < 0) return file;
  if (is_new) entry.add("create", path);
  if (!is_new && (flags & O_TRUNC) != 0) entry.add("truncate", path);
  return file;
}

// `write` writes these bytes, or the first of them, at the file's offset.
template <class Write>
ssize_t write_recorded(int file, std::string_view bytes, const Write& write) {
  const std::string path = path_of(file);
  note_unnamed(file, false);
  if (!is_recorded(path)) return write();
  const Entry entry;
  const ssize_t written = write();
  if (written <= 0) return written;
  const off_t end = ::lseek(file, 0, SEEK_CUR);
  entry.add("write", path, "", end - written, bytes.substr(0, static_cast<std::size_t>(written)));
  return written;
}

// `change` is 0 where it is done.
template <class Change>
int change_recorded(const char* kind, const std::string& path, const Change& change,
                    const std::string& to = "", off_t offset = 0) {
  if (!is_recorded(path)) return change();
  const Entry entry;
  const int result = change();
  if (result == 0) entry.add(kind, path, to, offset);
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_recorded(path, flags, [&] { return REAL(open)(path, flags, mode); });
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_recorded(path_at(directory, path), flags,
                       [&] { return REAL(openat)(directory, path, flags, mode); });
}

FILE* fopen(const char* path, const char* mode) {
  FILE* file = nullptr;
  const int flags = mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT;
  open_recorded(path, flags, [&] { return (file = REAL(fopen)(path, mode)) == nullptr ? -1 : 0; });
  return file;
}

FILE* fopen64(const char* path, const char* mode) {
  return ::fopen(path, mode);
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  return write_recorded(file, {static_cast<const char*>(bytes), count},
                        [&] { return REAL(write)(file, bytes, count); });
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write_recorded(file, all, [&] { return REAL(writev)(file, parts, count); });
}

int fsync(int file) {
  note_unnamed(file, true);
  return change_recorded("sync", path_of(file), [&] { return REAL(fsync)(file); });
}

int fdatasync(int file) {
  note_unnamed(file, true);
  return change_recorded("sync", path_of(file), [&] { return REAL(fdatasync)(file); });
}

int rename(const char* from, const char* to) noexcept {
  return change_recorded(
      "rename", from, [&] { return REAL(rename)(from, to); }, to);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) noexcept {
  return change_recorded(
      "rename", path_at(from_directory, from),
      [&] { return REAL(renameat2)(from_directory, from, to_directory, to, flags); },
      path_at(to_directory, to));
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  const std::string path = path_at(to_directory, to);
  const auto link = [&] { return REAL(linkat)(from_directory, from, to_directory, to, flags); };
  if (!is_recorded(path)) return link();
  const Entry entry;
  const std::string bytes = bytes_of(from);
  const int result = link();
  if (result != 0) return result;
  entry.add("create", path);
  entry.add("write", path, "", 0, bytes);
  const std::lock_guard lock(unnamed_mutex);
  if (synced_unnamed.contains(std::atoi(from + std::string_view("/proc/self/fd/").size())))
    entry.add("sync", path);
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return change_recorded("mkdir", path, [&] { return REAL(mkdir)(path, mode); });
}

int unlink(const char* path) noexcept {
  return change_recorded("remove", path, [&] { return REAL(unlink)(path); });
}

int rmdir(const char* path) noexcept {
  return change_recorded("remove", path, [&] { return REAL(rmdir)(path); });
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  return change_recorded("remove", path_at(directory, path),
                         [&] { return REAL(unlinkat)(directory, path, flags); });
}

int remove(const char* path) noexcept {
  return change_recorded("remove", path, [&] { return REAL(remove)(path); });
}

int truncate(const char* path, off_t length) noexcept {
  return change_recorded(
      "truncate", path, [&] { return REAL(truncate)(path, length); }, "", length);
}

int ftruncate(int file, off_t length) noexcept {
  return change_recorded(
      "truncate", path_of(file), [&] { return REAL(ftruncate)(file, length); }, "", length);
}

}  // extern "C"
