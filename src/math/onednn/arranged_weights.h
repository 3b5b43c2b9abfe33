// Weights in the layout that a convolution wants: re-laid once in each thread for all calls with the same
// values, whatever primitives they come from.
#pragma once

#include <map>

#include "lockstep/math/convolution.h"
#include "thread_engine.h"

namespace lockstep {

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

}  // namespace lockstep
