// oneDNN on the calling thread alone, and the few calls that both its products and its convolutions need.
#pragma once

#include <dnnl.hpp>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

struct ThreadEngine {
  dnnl::engine engine;
  dnnl::stream stream;
};

/// The engine of this thread. The first call in a thread keeps OpenMP, which oneDNN would split its work
/// with, to one thread; so each kernel starts with this call. Primitives and memory made with an engine stay
/// in its thread.
ThreadEngine& thread_engine();

/// Full precision, whatever the environment variables of oneDNN say.
dnnl::primitive_attr exact_attributes();

/// The description of a primitive for this thread. oneDNN 2 takes its operands as a descriptor, oneDNN 3 one
/// by one; a backward primitive wants the description of the forward one as a hint.
template <class Primitive, class... Operands>
typename Primitive::primitive_desc describe(const dnnl::primitive_attr& attributes,
                                            const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return {thread_engine().engine, operands..., attributes};
#else
  return {{operands...}, attributes, thread_engine().engine};
#endif
}
template <class Primitive, class Hint, class... Operands>
typename Primitive::primitive_desc describe_backward(const Hint& hint, const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return {thread_engine().engine, operands..., hint, exact_attributes()};
#else
  return {{operands...}, exact_attributes(), thread_engine().engine, hint};
#endif
}

/// Memory without an address yet: see point_to().
dnnl::memory borrowed_memory(const dnnl::memory::desc& desc);
/// oneDNN takes a writable address for operands that it only reads, too.
void point_to(dnnl::memory& memory, const void* data);

/// A tensor in the layout a primitive wants, and its way from or to the plain layout of the arena.
class ArrangedTensor {
 public:
  ArrangedTensor(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged);

  const dnnl::memory& memory() const { return arranged_; }
  /// Fills memory() from the plain tensor.
  void load(std::span<const Scalar> plain);
  /// plain (+)= memory()
  void store(std::span<Scalar> plain, Write write);

 private:
  dnnl::memory plain_;
  dnnl::memory arranged_;
  dnnl::reorder load_;
  dnnl::reorder replace_;
  dnnl::reorder add_;
};

}  // namespace lockstep
