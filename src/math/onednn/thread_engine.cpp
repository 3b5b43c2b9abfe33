#include "thread_engine.h"

#include <omp.h>

namespace lockstep {
namespace {

dnnl::reorder make_reorder(const dnnl::memory& from, const dnnl::memory& to, Write write) {
  dnnl::primitive_attr attributes = exact_attributes();
  if (write == Write::kAdd) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  return dnnl::reorder(dnnl::reorder::primitive_desc(from, to, attributes));
}

ThreadEngine make_thread_engine() {
  omp_set_num_threads(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return {engine, dnnl::stream(engine)};
}

}  // namespace

ThreadEngine& thread_engine() {
  thread_local ThreadEngine here = make_thread_engine();
  return here;
}

dnnl::primitive_attr exact_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

dnnl::memory borrowed_memory(const dnnl::memory::desc& desc) {
  return dnnl::memory(desc, thread_engine().engine, DNNL_MEMORY_NONE);
}

void point_to(dnnl::memory& memory, const void* data) {
  memory.set_data_handle(const_cast<void*>(data));
}

ArrangedTensor::ArrangedTensor(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged)
    : plain_(borrowed_memory(plain)),
      arranged_(arranged, thread_engine().engine),
      load_(make_reorder(plain_, arranged_, Write::kReplace)),
      replace_(make_reorder(arranged_, plain_, Write::kReplace)),
      add_(make_reorder(arranged_, plain_, Write::kAdd)) {}

void ArrangedTensor::load(std::span<const Scalar> plain) {
  point_to(plain_, plain.data());
  load_.execute(thread_engine().stream, plain_, arranged_);
}

void ArrangedTensor::store(std::span<Scalar> plain, Write write) {
  point_to(plain_, plain.data());
  dnnl::reorder& reorder = write == Write::kReplace ? replace_ : add_;
  reorder.execute(thread_engine().stream, arranged_, plain_);
}

}  // namespace lockstep
