#include <array>

#include "layers/entries.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

std::span<const LayerEntry> layer_catalog() {
  static const std::array kEntries{dense_entry(), flatten_entry(), relu_entry(), leaky_relu_entry(),
                                   tanh_entry(),  sigmoid_entry(), gelu_entry()};
  return kEntries;
}

}  // namespace lockstep
