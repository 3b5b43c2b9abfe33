// A model: its layers with their shapes, and the layout of its weights. Immutable; shared by all threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn/layer.h"
#include "lockstep/nn/options.h"
#include "lockstep/nn/params.h"

namespace lockstep {

struct ModelLayer {
  std::string title;  ///< "layer 2 'dense(128)'", for messages and tables
  std::unique_ptr<Layer> layer;
  Shape in;
  Shape out;
  Range params;  ///< in the arena; empty for a layer without weights
};

class Model {
 public:
  /// Errors: ConfigError naming the layer (and shapes) if the text is wrong or a layer does not fit.
  Model(const ModelOptions& options, const Shape& input);

  const std::vector<ModelLayer>& layers() const { return layers_; }
  const Layout& layout() const { return layout_; }
  const Shape& input() const { return layers_.front().in; }
  const Shape& output() const { return layers_.back().out; }
  /// Floating-point operations of one sample, forward and backward (three times forward).
  Index training_flops() const;
  /// Bytes of activations and their gradients for one sample.
  Index activation_bytes() const;

 private:
  std::vector<ModelLayer> layers_;
  Layout layout_;
};

}  // namespace lockstep
