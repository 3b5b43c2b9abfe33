#include <array>

#include "layers/entries.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

std::span<const LayerEntry> layer_catalog() {
  static const std::array kEntries{
      dense_entry(),          conv2d_entry(),     embedding_entry(),  maxpool_entry(), avgpool_entry(),
      global_avgpool_entry(), batch_norm_entry(), layer_norm_entry(), dropout_entry(), flatten_entry(),
      slice_entry(),          relu_entry(),       leaky_relu_entry(), elu_entry(),     gelu_entry(),
      silu_entry(),           softplus_entry(),   sigmoid_entry(),    tanh_entry()};
  return kEntries;
}

}  // namespace lockstep
