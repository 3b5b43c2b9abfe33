#include "arranged_weights.h"

namespace lockstep {

ArrangedWeights::ArrangedWeights(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged)
    : plain_(borrowed_memory(plain)),
      arranged_(arranged),
      load_(dnnl::reorder::primitive_desc(thread_engine().engine, plain, thread_engine().engine, arranged,
                                          exact_attributes())) {}

void ArrangedWeights::fill(Copy& copy, const void* values, std::uint64_t version) {
  if (!copy.memory) copy.memory = dnnl::memory(arranged_, thread_engine().engine);
  point_to(plain_, values);
  load_.execute(thread_engine().stream, plain_, copy.memory);
  copy.version = version;
}

}  // namespace lockstep
