#include <array>

#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {

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
