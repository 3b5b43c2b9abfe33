// A layer: immutable once declared. It sees matrices of one replica's samples and its own weights, and never
// a communicator, a rank or a thread; activations live in the caller's workspace.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/model_text.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// One tensor that a layer wants.
struct ParamSpec {
  std::string name;  ///< "weight", "bias"
  Shape shape;
  bool decays = true;
  Initialiser initialiser = Initialiser::kZero;
  Index fan_in = 0;
  Index fan_out = 0;
};

/// Collects the tensors of a layer, in order.
class ParamDeclarer {
 public:
  virtual ~ParamDeclarer() = default;
  /// The initialiser of the run (model.init), for weights whose layer names none.
  virtual Initialiser default_initialiser() const = 0;
  /// Where the tensor stands in the layer's part of the arena.
  virtual Range declare(ParamSpec spec) = 0;
};

/// n samples on their way forward. `params` is the layer's part of the arena.
struct ForwardArgs {
  ConstMatrix x;  ///< n x in
  std::span<const Scalar> params;
  Matrix y;  ///< n x out, to be written
};

/// The same n samples on their way back.
struct BackwardArgs {
  ConstMatrix x;   ///< n x in, as in forward
  ConstMatrix y;   ///< n x out, as forward left it
  ConstMatrix dy;  ///< n x out
  std::span<const Scalar> params;
  Matrix* dx;                 ///< n x in, to be written; null if nobody wants it (first layer)
  std::span<Scalar> dparams;  ///< gradient, summed over the n samples, in the layer's part of the arena
  Write write;                ///< whether dparams is overwritten or added to
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// Fixes the shapes; called once. Gives the shape of the output. Errors: ConfigError if `in` does not fit.
  virtual Shape declare(const Shape& in, ParamDeclarer& params) = 0;
  virtual void forward(ForwardArgs args) const = 0;
  virtual void backward(BackwardArgs args) const = 0;

  /// Only the shape changes: forward and backward are never called and no memory is used.
  virtual bool only_reshapes() const { return false; }
  /// Floating-point operations of one sample going forward.
  virtual Index flops() const { return 0; }
};

struct LayerEntry {
  std::string name;
  std::string signature;  ///< "dense(units, init=he)"
  std::string help;       ///< one sentence, with its formula or source
  std::string example;    ///< a layer text for the catalog tests, "dense(5)"
  std::function<std::unique_ptr<Layer>(LayerArguments&)> make;
};

/// Every layer there is. One more: one file in nn/layers and one line in its list.
std::span<const LayerEntry> layer_catalog();

}  // namespace lockstep
