// Gzip files by Intel's ISA-L, which unpacks two to three times as fast as zlib; others are read as they are.
// Stands for gzip.cpp where the library was found.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <vector>

#include "byte_inputs.h"

namespace lockstep {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
// ISA-L counts in 32 bits.
constexpr Index kLargestRead = Index{1} << 30;

class GzipInput final : public ByteStream::Input {
 public:
  explicit GzipInput(std::unique_ptr<ByteStream::Input> packed)
      : packed_(std::move(packed)), buffer_(kBufferBytes) {
    rewind();
  }

  bool compressed() const override { return true; }
  Index max_bytes() const override { return packed_->max_bytes() * kMaxUnpacked; }

  Index read_some(std::byte* bytes, Index count) override {
    if (ended_) return 0;
    const Index part = std::min(count, kLargestRead);
    state_.next_out = reinterpret_cast<std::uint8_t*>(bytes);
    state_.avail_out = static_cast<std::uint32_t>(part);
    return unpack() ? part - state_.avail_out : -1;
  }

  bool go_to(Index position) override {
    if (position < position_) rewind();
    return pass_over(position - position_);
  }

  std::string reason() const override { return reason_; }
  std::string cut_off() const override { return cut_off_ ? " (the gzip stream is cut off)" : ""; }

 private:
  void rewind() {
    packed_->go_to(0);
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
    position_ = 0;
    ended_ = false;
    cut_off_ = false;
  }

  // Unpacks until the output buffer is full, or the file ends.
  bool unpack() {
    while (state_.avail_out > 0 && !ended_) {
      if (state_.avail_in == 0 && !refill()) return false;
      if (state_.block_state == ISAL_BLOCK_FINISH) {
        next_stream();
        continue;
      }
      if (state_.avail_in == 0) {
        // isal may have taken in all packed bytes and still hold output.
        const std::uint32_t room = state_.avail_out;
        if (!inflate()) return false;
        if (state_.avail_out == room && state_.block_state != ISAL_BLOCK_FINISH) ended_ = cut_off_ = true;
      } else if (!inflate()) {
        return false;
      }
    }
    return true;
  }

  bool inflate() {
    const int code = isal_inflate(&state_);
    if (code < 0) reason_ = describe(code);
    return code >= 0;
  }

  bool refill() {
    const Index got = packed_->read(buffer_.data(), std::ssize(buffer_));
    if (got < 0) {
      reason_ = packed_->reason();
      return false;
    }
    state_.next_in = reinterpret_cast<std::uint8_t*>(buffer_.data());
    state_.avail_in = static_cast<std::uint32_t>(got);
    return true;
  }

  // A file may hold several streams one after the other; what else comes behind one is passed over, as by
  // zlib.
  void next_stream() {
    if (state_.avail_in == 0 || state_.next_in[0] != 0x1f) {
      ended_ = true;
      return;
    }
    std::uint8_t* next = state_.next_in;
    const std::uint32_t left = state_.avail_in;
    isal_inflate_reset(&state_);
    state_.crc_flag = ISAL_GZIP;
    state_.next_in = next;
    state_.avail_in = left;
  }

  static std::string describe(int code) {
    switch (code) {
      case ISAL_INVALID_BLOCK:
        return "invalid block";
      case ISAL_INVALID_SYMBOL:
        return "invalid symbol";
      case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
      case ISAL_INVALID_WRAPPER:
        return "invalid gzip header";
      case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
      case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check sum";
      default:
        return "invalid gzip stream";
    }
  }

  std::unique_ptr<ByteStream::Input> packed_;
  std::vector<std::byte> buffer_;
  inflate_state state_;
  bool ended_ = false;
  bool cut_off_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<ByteStream::Input> open_gzip(const std::string& path) {
  std::unique_ptr<ByteStream::Input> file = open_plain(path);
  std::array<std::byte, 2> magic{};
  const bool packed =
      file->read(magic.data(), 2) == 2 && magic == std::array{std::byte{0x1f}, std::byte{0x8b}};
  file->go_to(0);
  if (!packed) return file;
  return std::make_unique<GzipInput>(std::move(file));
}

}  // namespace lockstep
