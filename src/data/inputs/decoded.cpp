// Text in another encoding than UTF-8, decoded by iconv of the C library while it is read.
#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "byte_inputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kDecoderBufferBytes = std::size_t{1} << 16;
// No encoding makes more bytes of UTF-8 out of one of its own.
constexpr Index kMaxGrowth = 4;

class DecodedInput final : public ByteStream::Input, NoCopy {
 public:
  DecodedInput(std::unique_ptr<ByteStream::Input> encoded, const std::string& encoding)
      : encoded_(std::move(encoded)), encoding_(encoding), decoder_(iconv_open("UTF-8", encoding.c_str())) {
    if (decoder_ == reinterpret_cast<iconv_t>(-1)) {
      throw ConfigError(
          "data.encoding = {}: the C library knows no such encoding; 'iconv -l' lists those it knows",
          in_quotes(encoding));
    }
  }
  ~DecodedInput() override { iconv_close(decoder_); }

  // As in a compressed file, a position is found from the start only.
  bool compressed() const override { return true; }
  Index max_bytes() const override { return encoded_->max_bytes() * kMaxGrowth; }

  Index read_some(std::byte* bytes, Index count) override {
    if (ready_.empty() && !decode_more()) return failed_ ? -1 : 0;
    const Index part = std::min(count, std::ssize(ready_));
    std::memcpy(bytes, ready_.data(), static_cast<std::size_t>(part));
    ready_ = ready_.subspan(static_cast<std::size_t>(part));
    return part;
  }

  bool go_to(Index position) override {
    if (position < position_ && !rewind()) return false;
    return pass_over(position - position_);
  }

  std::string reason() const override { return reason_.empty() ? encoded_->reason() : reason_; }
  std::string cut_off() const override {
    return left_ > 0 ? " (its last character is cut off)" : encoded_->cut_off();
  }

 private:
  // Fills ready_; false at the end of the text, or if it cannot be read.
  bool decode_more() {
    while (ready_.empty()) {
      const Index got = encoded_->read(reinterpret_cast<std::byte*>(in_.data() + left_),
                                       static_cast<Index>(in_.size() - left_));
      failed_ = got < 0;
      if (got <= 0) return false;
      encoded_bytes_ += got;
      if (!decode(left_ + static_cast<std::size_t>(got))) return false;
    }
    return true;
  }

  // The first `bytes` of in_. An incomplete character at their end waits for more.
  bool decode(std::size_t bytes) {
    char* in = in_.data();
    char* out = out_.data();
    std::size_t out_bytes = out_.size();
    std::size_t in_bytes = bytes;
    const bool stopped = iconv(decoder_, &in, &in_bytes, &out, &out_bytes) == static_cast<std::size_t>(-1);
    if (stopped && errno != EINVAL) {
      reason_ = fmt::format("byte {} of the file is no text in {} (data.encoding)",
                            with_commas(encoded_bytes_ - static_cast<Index>(in_bytes)), in_quotes(encoding_));
      failed_ = true;
      return false;
    }
    ready_ = {out_.data(), out_.size() - out_bytes};
    left_ = in_bytes;
    std::memmove(in_.data(), in, left_);
    return true;
  }

  bool rewind() {
    iconv(decoder_, nullptr, nullptr, nullptr, nullptr);
    ready_ = {};
    left_ = 0;
    position_ = encoded_bytes_ = 0;
    failed_ = false;
    reason_.clear();
    return encoded_->go_to(0);
  }

  std::unique_ptr<ByteStream::Input> encoded_;
  std::string encoding_;
  iconv_t decoder_;
  std::vector<char> in_ = std::vector<char>(kDecoderBufferBytes);
  std::vector<char> out_ = std::vector<char>(kMaxGrowth * kDecoderBufferBytes);
  std::span<const char> ready_;  // part of out_ that is decoded, and not handed on
  std::size_t left_ = 0;         // bytes at the start of in_: an incomplete character
  Index encoded_bytes_ = 0;      // read so far
  bool failed_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<ByteStream::Input> open_decoded(std::unique_ptr<ByteStream::Input> encoded,
                                                const std::string& encoding) {
  return std::make_unique<DecodedInput>(std::move(encoded), encoding);
}

}  // namespace lockstep
