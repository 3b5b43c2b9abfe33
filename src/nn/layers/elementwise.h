// A layer that applies one function to each scalar. `Function` gives value(x) and derivative(x, y), where y =
// value(x).
#pragma once

#include <memory>
#include <utility>

#include "lockstep/nn/layer.h"

namespace lockstep {

template <class Function>
class Elementwise final : public Layer {
 public:
  explicit Elementwise(Function function) : function_(std::move(function)) {}

  Shape declare(const Shape& in, ParamDeclarer&) override {
    size_ = in.size();
    return in;
  }

  void forward(ForwardArgs args) const override {
    const Scalar* x = args.x.data();
    Scalar* y = args.y.data();
    for (Index i = 0; i < args.x.size(); ++i) y[i] = function_.value(x[i]);
  }

  void backward(BackwardArgs args) const override {
    if (args.dx == nullptr) return;
    const Scalar* x = args.x.data();
    const Scalar* y = args.y.data();
    const Scalar* dy = args.dy.data();
    Scalar* dx = args.dx->data();
    for (Index i = 0; i < args.x.size(); ++i) dx[i] = dy[i] * function_.derivative(x[i], y[i]);
  }

  Index flops() const override { return size_; }

 private:
  Function function_;
  Index size_ = 0;
};

template <class Function>
std::unique_ptr<Layer> make_elementwise(Function function) {
  return std::make_unique<Elementwise<Function>>(std::move(function));
}

}  // namespace lockstep
