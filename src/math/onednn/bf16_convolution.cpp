// Convolution with oneDNN on operands in bf16, cached as in convolution.cpp.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "convolution_description.h"
#include "lockstep/math/bf16_kernels.h"
#include "thread_engine.h"

namespace lockstep {
namespace {

using Description = ConvolutionDescription;
using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kHalf = dnnl::memory::data_type::bf16;

// That of the backward primitives, whose own types no forward pass has.
dnnl::convolution_forward::primitive_desc forward_hint(const ConvolutionKey& key) {
  return forward_primitive(Description(key, {.x = kHalf, .weights = kHalf, .y = kHalf}));
}

// The weights in the layout that a primitive wants.
class ArrangedWeights {
 public:
  ArrangedWeights(const Desc& plain, const Desc& arranged)
      : plain_(borrowed_memory(plain)),
        arranged_(arranged, thread_engine().engine),
        load_(dnnl::reorder::primitive_desc(plain_, arranged_)) {}

  const dnnl::memory& memory() const { return arranged_; }
  void load(std::span<const Bf16> plain) {
    point_to(plain_, plain.data());
    load_.execute(thread_engine().stream, plain_, arranged_);
  }

 private:
  dnnl::memory plain_;
  dnnl::memory arranged_;
  dnnl::reorder load_;
};

class Forward {
 public:
  explicit Forward(const ConvolutionKey& key)
      : Forward(Description(key, {.x = kHalf, .weights = kHalf, .y = kFloat})) {}

  void run(const Bf16Matrix& x, std::span<const Bf16> weights, std::span<const Scalar> bias, Matrix& y) {
    weights_.load(weights);
    point_to(arguments_.at(DNNL_ARG_SRC), x.data);
    if (!bias.empty()) point_to(arguments_.at(DNNL_ARG_BIAS), bias.data());
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
  ArrangedWeights weights_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

class BackwardData {
 public:
  explicit BackwardData(const ConvolutionKey& key)
      : BackwardData(key, Description(key, {.x = kFloat, .weights = kHalf, .y = kHalf})) {}

  void run(const Bf16Matrix& dy, std::span<const Bf16> weights, Matrix& dx) {
    weights_.load(weights);
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data);
    point_to(arguments_.at(DNNL_ARG_DIFF_SRC), dx.data());
    primitive_.execute(thread_engine().stream, arguments_);
  }

 private:
  using Primitive = dnnl::convolution_backward_data::primitive_desc;

  BackwardData(const ConvolutionKey& key, const Description& d)
      : BackwardData(d, Primitive({kDirect, d.x, d.any_weights, d.y, d.strides, d.dilations, d.pads_before,
                                   d.pads_after},
                                  exact_attributes(), thread_engine().engine, forward_hint(key))) {}
  BackwardData(const Description& d, const Primitive& primitive)
      : primitive_(primitive),
        weights_(d.weights, primitive.weights_desc()),
        arguments_{{DNNL_ARG_DIFF_DST, borrowed_memory(d.y)},
                   {DNNL_ARG_WEIGHTS, weights_.memory()},
                   {DNNL_ARG_DIFF_SRC, borrowed_memory(d.x)}} {}

  dnnl::convolution_backward_data primitive_;
  ArrangedWeights weights_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

class BackwardWeights {
 public:
  explicit BackwardWeights(const ConvolutionKey& key)
      : BackwardWeights(key, Description(key, {.x = kHalf, .weights = kFloat, .y = kHalf})) {}

  void run(const Bf16Matrix& x, const Bf16Matrix& dy, std::span<Scalar> dweights, Write write) {
    point_to(arguments_.at(DNNL_ARG_SRC), x.data);
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data);
    primitive_.execute(thread_engine().stream, arguments_);
    dweights_.store(dweights, write);
  }

 private:
  using Primitive = dnnl::convolution_backward_weights::primitive_desc;

  BackwardWeights(const ConvolutionKey& key, const Description& d)
      : BackwardWeights(d, Primitive({kDirect, d.x, d.any_weights, d.y, d.strides, d.dilations, d.pads_before,
                                      d.pads_after},
                                     exact_attributes(), thread_engine().engine, forward_hint(key))) {}
  BackwardWeights(const Description& d, const Primitive& primitive)
      : primitive_(primitive),
        dweights_(d.weights, primitive.diff_weights_desc()),
        arguments_{{DNNL_ARG_SRC, borrowed_memory(d.x)},
                   {DNNL_ARG_DIFF_DST, borrowed_memory(d.y)},
                   {DNNL_ARG_DIFF_WEIGHTS, dweights_.memory()}} {}

  dnnl::convolution_backward_weights primitive_;
  ArrangedTensor dweights_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

template <class Direction>
Direction& cached(const ConvolutionKey& key) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<ConvolutionKey, Direction> cache;
  return cache.try_emplace(key, key).first->second;
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const Bf16Matrix& x, std::span<const Bf16> weights,
                         std::span<const Scalar> bias, Matrix& y) {
  if (x.rows == 0) return;
  cached<Forward>({shape, x.rows, !bias.empty()}).run(x, weights, bias, y);
}

void convolution_backward_data(const ConvolutionShape& shape, const Bf16Matrix& dy,
                               std::span<const Bf16> weights, Matrix& dx) {
  if (dy.rows == 0) return;
  cached<BackwardData>({shape, dy.rows, false}).run(dy, weights, dx);
}

void convolution_backward_weights(const ConvolutionShape& shape, const Bf16Matrix& x, const Bf16Matrix& dy,
                                  std::span<Scalar> dweights, Write write) {
  if (x.rows == 0) {
    if (write == Write::kReplace) std::ranges::fill(dweights, Scalar{0});
    return;
  }
  cached<BackwardWeights>({shape, x.rows, false}).run(x, dy, dweights, write);
}

}  // namespace lockstep
