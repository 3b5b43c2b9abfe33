// A layer that applies one function to each scalar. `Function` gives value(x) and either derivative(x, y),
// where y = value(x), or slope(y), which needs no x and so works in place.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

template <class Function>
concept KnowsSlopeFromValue = requires(const Function& function) {
  function.slope(Scalar{});
};

template <class Function>
class Elementwise final : public Layer, public OnnxWords {
 public:
  Elementwise(Function function, Operation operation, OnnxFunction onnx)
      : function_(std::move(function)), operation_(std::move(operation)), onnx_(std::move(onnx)) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    size_ = inputs.front().size();
    return inputs.front();
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* x = args.x().data();
    Scalar* y = args.y.data();
    const Index size = args.x().size();
#pragma GCC ivdep  // y is x, or does not overlap it
    for (Index i = 0; i < size; ++i) y[i] = function_.value(x[i]);
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    const Scalar* y = args.y.data();
    const Scalar* dy = args.dy.data();
    Scalar* dx = args.dx()->data();
    const Index size = args.dy.size();
    if constexpr (KnowsSlopeFromValue<Function>) {
#pragma GCC ivdep
      for (Index i = 0; i < size; ++i) dx[i] = dy[i] * function_.slope(y[i]);
    } else {
      const Scalar* x = args.x().data();
      for (Index i = 0; i < size; ++i) dx[i] = dy[i] * function_.derivative(x[i], y[i]);
    }
  }

  bool in_place() const override {
    return KnowsSlopeFromValue<Function>;
  }
  bool reads_output() const override {
    return true;
  }
  Operation operation() const override {
    return operation_;
  }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return onnx_(graph, layer);
  }
  Index flops() const override {
    return size_;
  }

 private:
  Function function_;
  Operation operation_;
  OnnxFunction onnx_;
  Index size_ = 0;
};

/// `operation` is how exporters know it: its name and what it was made with; `onnx` is what ONNX calls it.
template <class Function>
std::unique_ptr<Layer> make_elementwise(Function function, Operation operation, OnnxFunction onnx) {
  return std::make_unique<Elementwise<Function>>(std::move(function), std::move(operation), std::move(onnx));
}

}  // namespace lockstep
