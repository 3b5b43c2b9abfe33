#include <array>

#include "codecs/entries.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/wire.h"

namespace lockstep {

std::span<const WireEntry> wire_catalog() {
  static const std::array kEntries{fp32_entry(), bf16_entry(), fp16_entry(), top_k_entry()};
  return kEntries;
}

std::unique_ptr<Wire> make_wire(const DistOptions& options) {
  return find_entry(wire_catalog(), "wire", options.wire).make(options);
}

bool is_lossy(const DistOptions& options) {
  return make_wire(options) != nullptr;
}

}  // namespace lockstep
