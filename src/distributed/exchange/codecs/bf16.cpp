// The upper half of a float, rounded to nearest, ties to even: its whole range, with 8 bits of precision.
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

class Bf16Codec final : public Codec {
 public:
  Index bytes(Index count) const override { return count * Index{sizeof(Bf16)}; }

  void encode(std::span<const Scalar> values, std::span<std::byte> message) override {
    round_to_bf16(values, {reinterpret_cast<Bf16*>(message.data()), values.size()});
  }

  void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const override {
    const auto* rounded = reinterpret_cast<const Bf16*>(message.data());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += factor * widen(rounded[i]);
  }
};

}  // namespace

CodecEntry bf16_entry() {
  return {.name = "bf16",
          .help = "bfloat16: half the bytes, the range of a float, 8 bits of precision",
          .options = {"distribute.error_feedback"},
          .make = [](const DistOptions&) { return std::make_unique<Bf16Codec>(); }};
}

}  // namespace lockstep
