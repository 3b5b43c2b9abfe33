// A file layer that fails when it is told to: a library of its own, which tests load before all others
// (LD_PRELOAD) into trainers that they start, so that the program under test is the one that users have. It
// stands between the program and the C library, counts the calls that concern files in one place, writes
// each down, and lets some of them go wrong. See file_faults.h for what the environment tells it.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/file_layer.h"

namespace {

using lockstep::test::mode_of;
using lockstep::test::path_at;
using lockstep::test::path_of;
using lockstep::test::rank_of_process;

constexpr std::array<std::pair<std::string_view, int>, 5> kErrors{
    {{"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO}, {"ENOENT", ENOENT}, {"EROFS", EROFS}}};

constexpr useconds_t kWaitMicroseconds = 30'000;

// "name=value;name=value": the value of one; "" where there is none.
std::string setting(std::string_view all, std::string_view name) {
  while (!all.empty()) {
    const std::string_view one = all.substr(0, all.find(';'));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return std::string(one.substr(name.size() + 1));
    all.remove_prefix(std::min(all.size(), one.size() + 1));
  }
  return "";
}

// Read once: the program may change its environment.
struct Faults {
  std::string in;     // a directory, or the beginning of the name of a file
  std::string calls;  // kinds of calls, with a comma behind each; empty: all
  long from = 0;      // the first that goes wrong, of those of these kinds; 0: none
  long count = 0;
  std::string effects;  // one for each of them, with a comma behind each; the last for all that follow
  std::string log;

  Faults() {
    const char* text = std::getenv("LOCKSTEP_TEST_FAULTS");
    if (text == nullptr) return;
    in = setting(text, "in");
    log = setting(text, "log") + "-" + rank_of_process();
    const std::string wanted = setting(text, "rank");
    if (!wanted.empty() && wanted != rank_of_process()) return;
    calls = setting(text, "calls");
    if (!calls.empty()) calls += ',';
    from = std::atol(setting(text, "from").c_str());
    count = std::atol(setting(text, "count").c_str());
    effects = setting(text, "do") + ",";
  }

  // Of the call of this number, from 1 on.
  std::string_view effect(long number) const {
    if (number < from || number - from >= count) return "";
    std::string_view left = effects;
    for (; number > from && left.find(',') + 1 < left.size(); --number)
      left.remove_prefix(left.find(',') + 1);
    return left.substr(0, left.find(','));
  }
};

const Faults& faults() {
  static const Faults all;
  return all;
}

std::atomic<long> calls_so_far = 0;  // of the kinds that may go wrong

// By system calls: what is written down is not counted.
void write_down(std::string_view kind, const std::string& path, std::string_view effect) {
  const long file =
      ::syscall(SYS_openat, AT_FDCWD, faults().log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
  const std::string line = std::string(kind) + " " + path + " " + std::string(effect) + "\n";
  ::syscall(SYS_write, file, line.data(), line.size());
  ::syscall(SYS_close, file);
}

// What becomes of a call: "" where all is well. Does not come back from "hang", nor from "die", except where
// something is to be written before.
std::string_view effect_on(std::string_view kind, const std::string& path) {
  const Faults& all = faults();
  if (all.in.empty() || !path.starts_with(all.in)) return "";
  const int before = errno;
  std::string_view effect;
  if (all.from > 0 && (all.calls.empty() || all.calls.find(std::string(kind) + ",") != std::string::npos))
    effect = all.effect(++calls_so_far);
  write_down(kind, path, effect);
  if (effect == "die" && kind != "write") ::kill(::getpid(), SIGKILL);
  while (effect == "hang") ::pause();
  if (effect == "wait") ::usleep(kWaitMicroseconds);
  errno = before;
  return effect;
}

// Whether the call fails, with errno as it is to be.
bool fails(std::string_view effect) {
  for (const auto& [name, number] : kErrors) {
    if (effect != name) continue;
    errno = number;
    return true;
  }
  return false;
}

bool fails(std::string_view kind, const std::string& path) {
  return fails(effect_on(kind, path));
}

// Faults of one file need its name while it is written: the program has to go without files that have none.
bool refuses_unnamed(int flags) {
  struct stat place {};
  if ((flags & O_TMPFILE) != O_TMPFILE || faults().in.empty()) return false;
  if (::stat(faults().in.c_str(), &place) == 0 && S_ISDIR(place.st_mode)) return false;
  errno = EOPNOTSUPP;
  return true;
}

std::string_view kind_of_open(int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return "create";
  return (flags & (O_CREAT | O_ACCMODE)) == O_RDONLY ? "open" : "create";
}

// `write` does it with these bytes.
template <class Write>
ssize_t write_some(int file, const void* bytes, std::size_t count, const Write& write) {
  const std::string_view effect = effect_on("write", path_of(file));
  if (fails(effect)) return -1;
  if (effect == "half" || effect == "die") {
    const ssize_t written = write(bytes, (count + 1) / 2);
    if (effect == "die") ::kill(::getpid(), SIGKILL);
    return written;
  }
  if (effect == "flip" && count > 0) {
    std::vector<char> changed(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + count);
    changed[count / 2] = static_cast<char>(changed[count / 2] ^ 4);
    return write(changed.data(), count);
  }
  return write(bytes, count);
}

// `read` does it with so many bytes.
template <class Read>
ssize_t read_some(int file, std::size_t count, const Read& read) {
  const std::string_view effect = effect_on("read", path_of(file));
  if (fails(effect)) return -1;
  if (effect == "end") return 0;
  return read(effect == "half" ? (count + 1) / 2 : count);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (refuses_unnamed(flags) || fails(kind_of_open(flags), path)) return -1;
  return REAL(open)(path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(kind_of_open(flags), path_at(directory, path))) return -1;
  return REAL(openat)(directory, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  return fails(std::string_view(mode).starts_with("r") ? "open" : "create", path) ? nullptr
                                                                                  : REAL(fopen)(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return fails(std::string_view(mode).starts_with("r") ? "open" : "create", path) ? nullptr
                                                                                  : REAL(fopen64)(path, mode);
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  return write_some(file, bytes, count,
                    [&](const void* some, std::size_t number) { return REAL(write)(file, some, number); });
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write_some(file, all.data(), all.size(),
                    [&](const void* some, std::size_t number) { return REAL(write)(file, some, number); });
}

std::size_t fwrite(const void* items, std::size_t size, std::size_t count, FILE* file) {
  const std::string_view effect = effect_on("write", path_of(::fileno(file)));
  if (effect == "die") ::kill(::getpid(), SIGKILL);
  return fails(effect) ? 0 : REAL(fwrite)(items, size, count, file);
}

ssize_t read(int file, void* to, std::size_t count) {
  return read_some(file, count, [&](std::size_t number) { return REAL(read)(file, to, number); });
}

ssize_t pread(int file, void* to, std::size_t count, off_t offset) {
  return read_some(file, count, [&](std::size_t number) { return REAL(pread)(file, to, number, offset); });
}

int fsync(int file) {
  return fails("sync", path_of(file)) ? -1 : REAL(fsync)(file);
}

// As in Linux, the descriptor is free whatever close() says.
int close(int file) {
  const bool failed = fails("close", path_of(file));
  const int error = errno;
  const int result = REAL(close)(file);
  if (!failed) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  return fails("rename", from) ? -1 : REAL(rename)(from, to);
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  if (fails("link", path_at(to_directory, to))) return -1;
  return REAL(linkat)(from_directory, from, to_directory, to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

int unlink(const char* path) noexcept {
  return fails("remove", path) ? -1 : REAL(unlink)(path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  return fails("remove", path_at(directory, path)) ? -1 : REAL(unlinkat)(directory, path, flags);
}

int remove(const char* path) noexcept {
  return fails("remove", path) ? -1 : REAL(remove)(path);
}

int truncate(const char* path, off_t length) noexcept {
  return fails("truncate", path) ? -1 : REAL(truncate)(path, length);
}

int ftruncate(int file, off_t length) noexcept {
  return fails("truncate", path_of(file)) ? -1 : REAL(ftruncate)(file, length);
}

}  // extern "C"
