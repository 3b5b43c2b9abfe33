// The messages of one sender about one slice of the gradient arena. The gradients go through a codec; the sum
// of the losses behind them goes as it is.
//
// With error feedback the sender keeps what each message loses and adds it to the next: so nothing is lost,
// only late, and training converges as if nothing had been lost (Seide et al. 2014, "1-bit stochastic
// gradient descent"; Karimireddy et al. 2019, "Error feedback fixes SignSGD").
#pragma once

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"

namespace lockstep {

class SliceCodec {
 public:
  /// The part of `slice` from `loss_offset` on (Plan::loss_offset) is exact. The codec must outlive it.
  SliceCodec(Codec& codec, Range slice, Index loss_offset, bool error_feedback);

  /// Size of a message.
  Index bytes() const;
  /// `values`: of the slice; `message`: bytes(), on a border of 4 bytes.
  void encode(std::span<const Scalar> values, std::span<std::byte> message);
  /// Saves the loss of the messages so far, as part of an array at offsets of the arena. Saves nothing
  /// without error feedback.
  void add_saved(SavedState& state, const std::string& array);
  /// values += the message, which may come from any sender about this slice.
  void add(std::span<const std::byte> message, std::span<Scalar> values) const;
  /// values = the message.
  void decode(std::span<const std::byte> message, std::span<Scalar> values) const;

 private:
  void make_lost();

  Codec* codec_;
  Index begin_;  // offset of the slice in the arena
  Index loss_offset_;
  std::size_t gradients_;  // numbers that go through the codec
  std::size_t codec_bytes_;
  std::size_t exact_;  // numbers behind them
  bool error_feedback_;
  AlignedBuffer<Scalar> lost_;  // what the messages so far have lost; empty before it is needed
};

/// Size of a gradient in messages of the options' codec, one for each slice of each bucket.
Index message_bytes(const Plan& plan, const DistOptions& options);

}  // namespace lockstep
