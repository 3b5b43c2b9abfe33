// Gzip files, and others as they are: zlib distinguishes them.
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "byte_inputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

constexpr unsigned kBufferBytes = 1u << 18;
// gzread counts in int.
constexpr Index kLargestRead = Index{1} << 30;

class GzipInput final : public ByteStream::Input {
 public:
  explicit GzipInput(const std::string& path) {
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) throw DataError("cannot open '{}': {}", path, std::strerror(errno));
    bytes_ = file_bytes(path);
    gzbuffer(file_.get(), kBufferBytes);
    compressed_ = gzdirect(file_.get()) == 0;
  }

  bool compressed() const override { return compressed_; }
  Index max_bytes() const override { return compressed_ ? bytes_ * kMaxUnpacked : bytes_; }

  Index read_some(std::byte* bytes, Index count) override {
    return gzread(file_.get(), bytes, static_cast<unsigned>(std::min(count, kLargestRead)));
  }

  bool go_to(Index position) override { return gzseek(file_.get(), position, SEEK_SET) >= 0; }

  std::string reason() const override {
    int code = 0;
    const char* reason = gzerror(file_.get(), &code);
    return code == Z_ERRNO ? std::strerror(errno) : reason;
  }

  std::string cut_off() const override {
    int code = Z_OK;
    gzerror(file_.get(), &code);
    return code == Z_BUF_ERROR ? " (the gzip stream is cut off)" : "";
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose_r(file); }
  };
  Index bytes_ = 0;
  bool compressed_ = false;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace

std::unique_ptr<ByteStream::Input> open_gzip(const std::string& path) {
  return std::make_unique<GzipInput>(path);
}

}  // namespace lockstep
