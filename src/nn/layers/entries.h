// One function per layer file; the catalog lists them.
#pragma once

#include "lockstep/nn/layer.h"

namespace lockstep {

LayerEntry dense_entry();
LayerEntry conv2d_entry();
LayerEntry embedding_entry();
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

}  // namespace lockstep
