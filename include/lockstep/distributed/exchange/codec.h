// The form in which numbers are sent: as they are, or in fewer bytes at the price of what a message loses. A
// property of the messages, not of a strategy: gradients go through the codec of the config wherever they are
// sent, and weights as they are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/types.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"

namespace lockstep {

/// A lossy encoding. The same numbers give the same message everywhere. If a number is NaN or infinite, so is
/// one at least that the message stands for: a bad gradient does not hide. Not for two threads at a time.
class Codec {
 public:
  virtual ~Codec() = default;

  /// Bytes of a message of `count` numbers, whatever they are: so both sides know it.
  virtual Index bytes(Index count) const = 0;
  /// `message`: bytes(values.size()), on a border of 4 bytes.
  virtual void encode(std::span<const Scalar> values, std::span<std::byte> message) = 0;
  /// values += factor * the numbers of the message, which are as many.
  virtual void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const = 0;
};

struct CodecEntry {
  std::string name;
  std::string help;
  std::vector<std::string> options = {};  ///< keys that it reads
  /// Null for numbers that are sent as they are, and without a copy.
  std::function<std::unique_ptr<Codec>(const DistOptions&)> make;
};

/// Every codec there is. To add one: src/README.md.
std::span<const CodecEntry> codec_catalog();

/// The codec of the options; null for numbers that are sent as they are.
std::unique_ptr<Codec> make_codec(const DistOptions& options);

/// Whether numbers are rounded or left out on their way.
bool is_lossy(const DistOptions& options);

// The messages of one sender about one slice of the gradient arena. The gradients go through a codec; the sum
// of the losses behind them goes as it is.
//
// With error feedback the sender keeps what each message loses and adds it to the next: so nothing is lost,
// only late, and training converges as if nothing had been lost (Seide et al. 2014, "1-bit stochastic
// gradient descent"; Karimireddy et al. 2019, "Error feedback fixes SignSGD").

class SliceCodec {
 public:
  /// The part of `slice` from `loss_offset` on (Plan::loss_offset) is exact. The codec must outlive it.
  SliceCodec(Codec& codec, Range slice, Index loss_offset, bool error_feedback);

  /// Size of a message.
  Index bytes() const { return static_cast<Index>(codec_bytes_ + exact_ * sizeof(Scalar)); }
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
  void make_lost() {
    if (lost_.size() == 0) lost_ = AlignedBuffer<Scalar>(static_cast<Index>(gradients_));
  }

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
