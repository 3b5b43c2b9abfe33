// Convolution with oneDNN on channels-last activations. Primitives are kept per thread for each (shape,
// rows), so a step after the first creates nothing; weights go through a copy in the blocked layout that the
// primitive wants.
//
// oneDNN could also apply relu in the same pass, but its relu turns NaN into 0.
#include "lockstep/math/convolution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "convolution_description.h"
#include "thread_engine.h"

namespace lockstep {
namespace {

using Description = ConvolutionDescription;
using Key = ConvolutionKey;

dnnl::convolution_backward_data::primitive_desc backward_data_primitive(const Description& d) {
  return {{kDirect, d.x, d.any_weights, d.y, d.strides, d.dilations, d.pads_before, d.pads_after},
          exact_attributes(),
          thread_engine().engine,
          forward_primitive(d)};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_primitive(const Description& d) {
  return {{kDirect, d.x, d.any_weights, d.bias, d.y, d.strides, d.dilations, d.pads_before, d.pads_after},
          exact_attributes(),
          thread_engine().engine,
          forward_primitive(d)};
}

class Forward {
 public:
  explicit Forward(const Key& key) : Forward(Description(key)) {}

  void run(const ConstMatrix& x, const ConvolutionWeights& w, Matrix& y) {
    weights_.load(w.weights);
    point_to(arguments_.at(DNNL_ARG_SRC), x.data());
    if (!w.bias.empty()) point_to(arguments_.at(DNNL_ARG_BIAS), w.bias.data());
    point_to(arguments_.at(DNNL_ARG_DST), y.data());
    primitive_.execute(thread_engine().stream, arguments_);
  }

 private:
  explicit Forward(const Description& d) : Forward(d, forward_primitive(d)) {}
  Forward(const Description& d, const dnnl::convolution_forward::primitive_desc& primitive)
      : primitive_(primitive),
        weights_(d.weights, primitive.weights_desc()),
        arguments_{{DNNL_ARG_SRC, borrowed_memory(d.x)},
                   {DNNL_ARG_WEIGHTS, weights_.memory()},
                   {DNNL_ARG_DST, borrowed_memory(d.y)}} {
    if (!d.bias.is_zero()) arguments_.emplace(DNNL_ARG_BIAS, borrowed_memory(d.bias));
  }

  dnnl::convolution_forward primitive_;
  ArrangedTensor weights_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

class BackwardData {
 public:
  explicit BackwardData(const Key& key) : BackwardData(Description(key)) {}

  void run(const ConstMatrix& dy, std::span<const Scalar> weights, Matrix& dx) {
    weights_.load(weights);
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data());
    point_to(arguments_.at(DNNL_ARG_DIFF_SRC), dx.data());
    primitive_.execute(thread_engine().stream, arguments_);
  }

 private:
  explicit BackwardData(const Description& d) : BackwardData(d, backward_data_primitive(d)) {}
  BackwardData(const Description& d, const dnnl::convolution_backward_data::primitive_desc& primitive)
      : primitive_(primitive),
        weights_(d.weights, primitive.weights_desc()),
        arguments_{{DNNL_ARG_DIFF_DST, borrowed_memory(d.y)},
                   {DNNL_ARG_WEIGHTS, weights_.memory()},
                   {DNNL_ARG_DIFF_SRC, borrowed_memory(d.x)}} {}

  dnnl::convolution_backward_data primitive_;
  ArrangedTensor weights_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

class BackwardWeights {
 public:
  explicit BackwardWeights(const Key& key) : BackwardWeights(Description(key)) {}

  void run(const ConstMatrix& x, const ConstMatrix& dy, const ConvolutionGradient& gradient) {
    point_to(arguments_.at(DNNL_ARG_SRC), x.data());
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data());
    primitive_.execute(thread_engine().stream, arguments_);
    weights_.store(gradient.weights, gradient.write);
    if (bias_) bias_->store(gradient.bias, gradient.write);
  }

 private:
  explicit BackwardWeights(const Description& d) : BackwardWeights(d, backward_weights_primitive(d)) {}
  BackwardWeights(const Description& d, const dnnl::convolution_backward_weights::primitive_desc& primitive)
      : primitive_(primitive),
        weights_(d.weights, primitive.diff_weights_desc()),
        arguments_{{DNNL_ARG_SRC, borrowed_memory(d.x)},
                   {DNNL_ARG_DIFF_DST, borrowed_memory(d.y)},
                   {DNNL_ARG_DIFF_WEIGHTS, weights_.memory()}} {
    if (d.bias.is_zero()) return;
    bias_.emplace(d.bias, d.bias);
    arguments_.emplace(DNNL_ARG_DIFF_BIAS, bias_->memory());
  }

  dnnl::convolution_backward_weights primitive_;
  ArrangedTensor weights_;
  std::optional<ArrangedTensor> bias_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

template <class Direction>
Direction& cached(const Key& key) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<Key, Direction> cache;
  return cache.try_emplace(key, key).first->second;
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x, const ConvolutionWeights& w,
                         Matrix& y) {
  if (x.rows() == 0) return;
  cached<Forward>({shape, x.rows(), !w.bias.empty()}).run(x, w, y);
}

void convolution_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                               std::span<const Scalar> weights, Matrix& dx) {
  if (dy.rows() == 0) return;
  cached<BackwardData>({shape, dy.rows(), false}).run(dy, weights, dx);
}

void convolution_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                  const ConvolutionGradient& gradient) {
  if (x.rows() == 0) {
    if (gradient.write == Write::kAdd) return;
    std::ranges::fill(gradient.weights, Scalar{0});
    std::ranges::fill(gradient.bias, Scalar{0});
    return;
  }
  cached<BackwardWeights>({shape, x.rows(), !gradient.bias.empty()}).run(x, dy, gradient);
}

}  // namespace lockstep
