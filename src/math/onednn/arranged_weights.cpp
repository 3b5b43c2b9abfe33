#include "arranged_weights.h"

namespace lockstep {

ArrangedWeights::ArrangedWeights(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged)
    : plain_(borrowed_memory(plain)),
      arranged_(arranged),
      load_(dnnl::reorder::primitive_desc(thread_engine().engine, plain, thread_engine().engine, arranged,
                                          exact_attributes())) {}

// Primitives for other numbers of samples want the same layout, more often than not.
ArrangedWeights::Copy& ArrangedWeights::find_copy(Index offset) const {
  thread_engine();  // before the copies, which must go first when the thread ends
  thread_local std::multimap<Index, Copy> by_offset;
  const auto [begin, end] = by_offset.equal_range(offset);
  for (auto known = begin; known != end; ++known) {
    if (known->second.memory.get_desc() == arranged_) return known->second;
  }
  return by_offset.emplace(offset, Copy{dnnl::memory(arranged_, thread_engine().engine)})->second;
}

void ArrangedWeights::fill(Copy& copy, const void* values, std::uint64_t version) {
  point_to(plain_, values);
  load_.execute(thread_engine().stream, plain_, copy.memory);
  copy.version = version;
}

}  // namespace lockstep
