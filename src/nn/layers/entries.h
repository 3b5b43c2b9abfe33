// One function per layer file; the catalog lists them.
#pragma once

#include "lockstep/nn/layer.h"

namespace lockstep {

LayerEntry dense_entry();
LayerEntry flatten_entry();
LayerEntry relu_entry();
LayerEntry leaky_relu_entry();
LayerEntry tanh_entry();
LayerEntry sigmoid_entry();
LayerEntry gelu_entry();

}  // namespace lockstep
