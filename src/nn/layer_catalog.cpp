#include <array>

#include "lockstep/nn/layer.h"

namespace lockstep {

// One line for each file in layers/.
LayerEntry dense_entry();
LayerEntry conv2d_entry();
LayerEntry embedding_entry();
LayerEntry periodic_entry();
LayerEntry scale_entry();
LayerEntry tabm_entry();
LayerEntry tabm_dense_entry();
LayerEntry tabm_heads_entry();
LayerEntry maxpool_entry();
LayerEntry avgpool_entry();
LayerEntry global_avgpool_entry();
LayerEntry batch_norm_entry();
LayerEntry layer_norm_entry();
LayerEntry dropout_entry();
LayerEntry flatten_entry();
LayerEntry slice_entry();
LayerEntry relu_entry();
LayerEntry leaky_relu_entry();
LayerEntry elu_entry();
LayerEntry gelu_entry();
LayerEntry silu_entry();
LayerEntry softplus_entry();
LayerEntry sigmoid_entry();
LayerEntry tanh_entry();

std::span<const LayerEntry> layer_catalog() {
  static const std::array kEntries{
      dense_entry(),          conv2d_entry(),     embedding_entry(),  periodic_entry(), scale_entry(),
      tabm_entry(),           tabm_dense_entry(), tabm_heads_entry(), maxpool_entry(),  avgpool_entry(),
      global_avgpool_entry(), batch_norm_entry(), layer_norm_entry(), dropout_entry(),  flatten_entry(),
      slice_entry(),          relu_entry(),       leaky_relu_entry(), elu_entry(),      gelu_entry(),
      silu_entry(),           softplus_entry(),   sigmoid_entry(),    tanh_entry()};
  return kEntries;
}

}  // namespace lockstep
