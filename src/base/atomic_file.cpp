#include "lockstep/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path, int error = errno) {
  throw DataError(fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(error)));
}

}  // namespace

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 && errno == EACCES) return;
  if (descriptor < 0) fail("sync", directory);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error != 0 && error != EINVAL && error != ENOTSUP) fail("sync", directory, error);
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

void write_part(const std::filesystem::path& path, std::int64_t offset, std::string_view bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("create", path);
  const bool written = ::lseek(descriptor, offset, SEEK_SET) >= 0 && write_all(descriptor, bytes);
  const int error = written && ::fsync(descriptor) == 0 ? 0 : errno;
  if (::close(descriptor) != 0 || error != 0) fail("write", path, error != 0 ? error : errno);
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), temporary_(path) {
  temporary_ += fmt::format(".partial-{}", ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create", path_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  if (!write_all(descriptor_, bytes)) fail("write", path_);
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("sync", path_);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename a finished file to", path_);
  committed_ = true;
  sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace lockstep
