// oneDNN on the calling thread alone, and the few calls that both its products and its convolutions need.
#pragma once

#include <dnnl.hpp>

#include <map>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/convolution.h"
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

/// Full precision, whatever the environment variables of oneDNN say; and whether the result is added.
dnnl::primitive_attr exact_attributes(Write write = Write::kReplace);

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
/// `suits`: whether an implementation will do, by its name; hint and descriptor have to live on while others
/// are asked for.
template <class Primitive, class Hint, class Suits, class... Operands>
typename Primitive::primitive_desc describe_backward(const Hint& hint, const Suits& suits,
                                                     const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  typename Primitive::primitive_desc found(thread_engine().engine, operands..., hint, exact_attributes());
#else
  const typename Primitive::desc descriptor(operands...);
  typename Primitive::primitive_desc found(descriptor, exact_attributes(), thread_engine().engine, hint);
#endif
  while (!suits(found.impl_info_str()) && found.next_impl()) {
  }
  return found;
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

// Weights in the layout that a convolution wants: re-laid once in each thread for all calls with the same
// values, whatever primitives they come from.

class ArrangedWeights {
 public:
  ArrangedWeights(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged);

  /// Valid until the next call in this thread for the same offset.
  template <class Number>
  const dnnl::memory& of(const ConvolutionWeights<Number>& w) {
    Copy*& copy = copies_[w.offset];
    if (copy == nullptr) copy = &find_copy(w.offset);
    if (w.version == 0 || w.version != copy->version) fill(*copy, w.values.data(), w.version);
    return copy->memory;
  }

 private:
  struct Copy {
    dnnl::memory memory;
    std::uint64_t version = 0;
  };
  Copy& find_copy(Index offset) const;
  void fill(Copy& copy, const void* values, std::uint64_t version);

  dnnl::memory plain_;
  dnnl::memory::desc arranged_;
  dnnl::reorder load_;
  std::map<Index, Copy*> copies_;  // copies by offset: layers of one shape take turns
};

// A convolution as oneDNN describes it.

inline constexpr auto kDirect = dnnl::algorithm::convolution_direct;

struct ConvolutionKey {
  ConvolutionShape shape;
  Index rows = 0;
  bool has_bias = false;

  auto operator<=>(const ConvolutionKey&) const = default;
};

/// The types of the operands and of the result, each at its offset in the forward pass; the bias is f32.
struct ConvolutionTypes {
  dnnl::memory::data_type x, weights, y;
};

/// The tensors of a key and the geometry.
struct ConvolutionDescription {
  using Dims = dnnl::memory::dims;
  using Desc = dnnl::memory::desc;

  explicit ConvolutionDescription(const ConvolutionKey& key, const ConvolutionTypes& types);

  Desc x, y, weights, any_weights;
  Desc bias;  // stays empty where there is none
  Dims strides, dilations, pads_before, pads_after;
};

/// The forward primitive's description, which oneDNN also wants as a hint for each backward primitive.
dnnl::convolution_forward::primitive_desc forward_primitive(const ConvolutionDescription& d);

}  // namespace lockstep
