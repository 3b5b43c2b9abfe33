#include "lockstep/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path) {
  throw DataError(fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(errno)));
}

// A file descriptor that is closed on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_and_sync(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail("create", path);
  for (const std::string_view part : parts) write_all(file.get(), part, path);
  if (::fsync(file.get()) != 0) fail("sync", path);
  if (file.close() != 0) fail("close", path);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;  // opening the file tells the reason
  if (std::filesystem::is_directory(path, ignored)) {
    throw DataError(fmt::format("cannot read '{}': it is a directory", path.string()));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("open", path);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) fail("read", path);
  return text;
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".partial-{}", ::getpid());
  try {
    write_and_sync(temporary, parts);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("rename a finished file to", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  // The rename itself survives a crash only once the directory is synced.
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) ::fsync(parent.get());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::array parts{text};
  write_file_atomically(path, parts);
}

std::int64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) {
    throw DataError(fmt::format("cannot open '{}': {}", path.string(), error.message()));
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace lockstep
