#include "lockstep/distributed/exchange/codec.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/catalog.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {

SliceCodec::SliceCodec(Codec& codec, Range slice, Index loss_offset, bool error_feedback)
    : codec_(&codec),
      begin_(slice.begin),
      loss_offset_(loss_offset),
      gradients_(static_cast<std::size_t>(intersect(slice, {0, loss_offset}).size())),
      codec_bytes_(static_cast<std::size_t>(codec.bytes(static_cast<Index>(gradients_)))),
      exact_(static_cast<std::size_t>(slice.size()) - gradients_),
      error_feedback_(error_feedback) {}

void SliceCodec::encode(std::span<const Scalar> values, std::span<std::byte> message) {
  if (exact_ > 0) std::memcpy(&message[codec_bytes_], &values[gradients_], exact_ * sizeof(Scalar));
  const std::span<const Scalar> gradients = values.first(gradients_);
  const std::span<std::byte> encoded = message.first(codec_bytes_);
  if (!error_feedback_) {
    codec_->encode(gradients, encoded);
    return;
  }
  make_lost();
  as_array(lost_.span()) += as_array(gradients);
  codec_->encode(lost_.span(), encoded);
  codec_->add(encoded, -1, lost_.span());
}

void SliceCodec::add_saved(SavedState& state, const std::string& array) {
  if (!error_feedback_ || gradients_ == 0) return;
  make_lost();
  const Range range{begin_, begin_ + lost_.size()};
  state.push_back({.array = array,
                   .size = loss_offset_,
                   .range = range,
                   .memory = as_buffer(lost_.span()),
                   .written = range,
                   .optional = true});
}

void SliceCodec::add(std::span<const std::byte> message, std::span<Scalar> values) const {
  codec_->add(message.first(codec_bytes_), 1, values.first(gradients_));
  for (std::size_t i = 0; i < exact_; ++i) {
    Scalar value = 0;
    std::memcpy(&value, &message[codec_bytes_ + i * sizeof value], sizeof value);
    values[gradients_ + i] += value;
  }
}

void SliceCodec::decode(std::span<const std::byte> message, std::span<Scalar> values) const {
  std::ranges::fill(values, Scalar{0});
  add(message, values);
}

Index message_bytes(const Plan& plan, const DistOptions& options) {
  const std::unique_ptr<Codec> codec = make_codec(options);
  if (codec == nullptr) return plan.gradient_size * Index{sizeof(Scalar)};
  Index bytes = 0;
  for (const std::vector<Range>& slices : plan.slices) {
    for (const Range slice : slices) bytes += SliceCodec(*codec, slice, plan.loss_offset, false).bytes();
  }
  return bytes;
}

// One line for each file in codecs/.
CodecEntry fp32_entry();
CodecEntry bf16_entry();
CodecEntry fp16_entry();
CodecEntry top_k_entry();

std::span<const CodecEntry> codec_catalog() {
  static const std::array kEntries{fp32_entry(), bf16_entry(), fp16_entry(), top_k_entry()};
  return kEntries;
}

std::unique_ptr<Codec> make_codec(const DistOptions& options) {
  return find_entry(codec_catalog(), "compression", options.compression).make(options);
}

bool is_lossy(const DistOptions& options) {
  return make_codec(options) != nullptr;
}

}  // namespace lockstep
