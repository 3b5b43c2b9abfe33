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
