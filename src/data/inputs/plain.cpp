// Files as they are.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "data/byte_inputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

class PlainInput final : public ByteStream::Input {
 public:
  explicit PlainInput(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw DataError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
    bytes_ = file_bytes(path);
  }
  PlainInput(const PlainInput&) = delete;
  PlainInput& operator=(const PlainInput&) = delete;
  ~PlainInput() override { ::close(file_); }

  bool compressed() const override { return false; }
  Index max_bytes() const override { return bytes_; }

  Index read(std::byte* bytes, Index count) override {
    Index done = 0;
    while (done < count) {
      const ssize_t got =
          ::pread(file_, bytes + done, static_cast<std::size_t>(count - done), position_ + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        error_ = errno;
        return -1;
      }
      if (got == 0) break;
      done += got;
    }
    position_ += done;
    return done;
  }

  bool go_to(Index position) override {
    position_ = position;
    return true;
  }
  std::string reason() const override { return std::strerror(error_); }

 private:
  int file_;
  int error_ = 0;
  Index bytes_ = 0;
  Index position_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream::Input> open_plain(const std::string& path) {
  return std::make_unique<PlainInput>(path);
}

}  // namespace lockstep
