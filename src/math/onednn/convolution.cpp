// Convolution with oneDNN on channels-last activations, with operands in fp32 or bf16. Primitives are kept
// per thread for each (shape, rows), so a step after the first creates nothing. Weights, and their gradient,
// go through the blocked layout that the primitive wants.
//
// oneDNN could also apply relu in the same pass, but its relu turns NaN into 0.
#include "lockstep/math/convolution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "thread_engine.h"

namespace lockstep {
namespace {

using Description = ConvolutionDescription;
using Key = ConvolutionKey;
using Type = dnnl::memory::data_type;
using Arguments = std::unordered_map<int, dnnl::memory>;

template <class Number>
constexpr Type kType = Type::f32;
template <>
constexpr Type kType<Bf16> = Type::bf16;

// y = x convolved with weights + bias; results are in fp32.
template <class Number>
class Forward {
 public:
  explicit Forward(const Key& key)
      : tensors_(key, {.x = kType<Number>, .weights = kType<Number>, .y = Type::f32}),
        description_(forward_primitive(tensors_)) {
    if (key.has_bias) arguments_.emplace(DNNL_ARG_BIAS, borrowed_memory(tensors_.bias));
  }

  template <class Operand>
  void run(const Operand& x, const ConvolutionWeights<Number>& w, std::span<const Scalar> bias, Matrix& y) {
    arguments_.at(DNNL_ARG_WEIGHTS) = weights_.of(w);
    point_to(arguments_.at(DNNL_ARG_SRC), x.data());
    if (!bias.empty()) point_to(arguments_.at(DNNL_ARG_BIAS), bias.data());
    point_to(arguments_.at(DNNL_ARG_DST), y.data());
    primitive_.execute(thread_engine().stream, arguments_);
  }

 private:
  Description tensors_;
  dnnl::convolution_forward::primitive_desc description_;
  dnnl::convolution_forward primitive_{description_};
  ArrangedWeights weights_{tensors_.weights, description_.weights_desc()};
  Arguments arguments_{{DNNL_ARG_SRC, borrowed_memory(tensors_.x)},
                       {DNNL_ARG_WEIGHTS, {}},
                       {DNNL_ARG_DST, borrowed_memory(tensors_.y)}};
};

// The forward description that oneDNN wants as a hint for each backward primitive. Its types may be ones that
// no forward pass has.
template <class Number>
dnnl::convolution_forward::primitive_desc forward_hint(const Key& key) {
  return forward_primitive(
      Description(key, {.x = kType<Number>, .weights = kType<Number>, .y = kType<Number>}));
}

// The description of a backward primitive with these operands.
template <class Primitive, class Suits, class... Operands>
typename Primitive::primitive_desc backward_primitive(const dnnl::convolution_forward::primitive_desc& hint,
                                                      const Suits& suits, const Description& d,
                                                      const Operands&... operands) {
  return describe_backward<Primitive>(hint, suits, kDirect, operands..., d.strides, d.dilations,
                                      d.pads_before, d.pads_after);
}

template <class Number>
class BackwardData {
 public:
  explicit BackwardData(const Key& key)
      : tensors_(key, {.x = Type::f32, .weights = kType<Number>, .y = kType<Number>}),
        description_(backward_primitive<dnnl::convolution_backward_data>(
            forward_hint<Number>(key), [](const char*) { return true; }, tensors_, tensors_.x,
            tensors_.any_weights, tensors_.y)) {}

  template <class Operand>
  void run(const Operand& dy, const ConvolutionWeights<Number>& w, Matrix& dx) {
    arguments_.at(DNNL_ARG_WEIGHTS) = weights_.of(w);
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data());
    point_to(arguments_.at(DNNL_ARG_DIFF_SRC), dx.data());
    primitive_.execute(thread_engine().stream, arguments_);
  }

 private:
  Description tensors_;
  dnnl::convolution_backward_data::primitive_desc description_;
  dnnl::convolution_backward_data primitive_{description_};
  ArrangedWeights weights_{tensors_.weights, description_.weights_desc()};
  Arguments arguments_{{DNNL_ARG_DIFF_DST, borrowed_memory(tensors_.y)},
                       {DNNL_ARG_WEIGHTS, {}},
                       {DNNL_ARG_DIFF_SRC, borrowed_memory(tensors_.x)}};
};

// oneDNN 2.6 packs the pixels that a 1x1 window with a stride uses into memory that it takes too small,
// unless channels fill whole vectors: it writes behind it. Then its next implementation is taken.
bool packs_beyond_memory(const ConvolutionShape& s, const char* implementation) {
  constexpr Index kMaxVector = 16;
  const bool pointwise = s.vertical.size == 1 && s.horizontal.size == 1;
  const bool strided = s.vertical.stride > 1 || s.horizontal.stride > 1;
  const bool whole_vectors = s.in_channels % kMaxVector == 0 && s.out_channels % kMaxVector == 0;
  return pointwise && strided && !whole_vectors && std::string_view(implementation).starts_with("jit_1x1");
}

template <class Number>
class BackwardWeights {
 public:
  explicit BackwardWeights(const Key& key)
      : tensors_(key, {.x = kType<Number>, .weights = Type::f32, .y = kType<Number>}),
        description_(backward_primitive<dnnl::convolution_backward_weights>(
            forward_hint<Number>(key),
            [&key](const char* name) { return !packs_beyond_memory(key.shape, name); }, tensors_, tensors_.x,
            tensors_.any_weights, tensors_.bias, tensors_.y)) {
    if (!key.has_bias) return;
    bias_.emplace(tensors_.bias, tensors_.bias);
    arguments_.emplace(DNNL_ARG_DIFF_BIAS, bias_->memory());
  }

  template <class Operand>
  void run(const Operand& x, const Operand& dy, const ConvolutionGradient& gradient) {
    point_to(arguments_.at(DNNL_ARG_SRC), x.data());
    point_to(arguments_.at(DNNL_ARG_DIFF_DST), dy.data());
    primitive_.execute(thread_engine().stream, arguments_);
    weights_.store(gradient.weights, gradient.write);
    if (bias_) bias_->store(gradient.bias, gradient.write);
  }

 private:
  Description tensors_;
  dnnl::convolution_backward_weights::primitive_desc description_;
  dnnl::convolution_backward_weights primitive_{description_};
  ArrangedTensor weights_{tensors_.weights, description_.diff_weights_desc()};
  std::optional<ArrangedTensor> bias_;
  Arguments arguments_{{DNNL_ARG_SRC, borrowed_memory(tensors_.x)},
                       {DNNL_ARG_DIFF_DST, borrowed_memory(tensors_.y)},
                       {DNNL_ARG_DIFF_WEIGHTS, weights_.memory()}};
};

template <class Direction>
Direction& cached_primitive(const Key& key) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<Key, Direction> cache;
  return cache.try_emplace(key, key).first->second;
}

// oneDNN refuses operands without rows.
template <class Number, class Operand>
void backward_weights(const Key& key, const Operand& x, const Operand& dy,
                      const ConvolutionGradient& gradient) {
  if (key.rows > 0) return cached_primitive<BackwardWeights<Number>>(key).run(x, dy, gradient);
  if (gradient.write == Write::kAdd) return;
  std::ranges::fill(gradient.weights, Scalar{0});
  std::ranges::fill(gradient.bias, Scalar{0});
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x,
                         const ConvolutionWeights<Scalar>& w, std::span<const Scalar> bias, Matrix& y) {
  if (x.rows() == 0) return;
  cached_primitive<Forward<Scalar>>({shape, x.rows(), !bias.empty()}).run(x, w, bias, y);
}

void convolution_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                               const ConvolutionWeights<Scalar>& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  cached_primitive<BackwardData<Scalar>>({shape, dy.rows(), false}).run(dy, w, dx);
}

void convolution_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                  const ConvolutionGradient& gradient) {
  backward_weights<Scalar>({shape, x.rows(), !gradient.bias.empty()}, x, dy, gradient);
}

void convolution_forward(const ConvolutionShape& shape, const Bf16Matrix& x,
                         const ConvolutionWeights<Bf16>& w, std::span<const Scalar> bias, Matrix& y) {
  if (x.rows() == 0) return;
  cached_primitive<Forward<Bf16>>({shape, x.rows(), !bias.empty()}).run(x, w, bias, y);
}

void convolution_backward_data(const ConvolutionShape& shape, const Bf16Matrix& dy,
                               const ConvolutionWeights<Bf16>& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  cached_primitive<BackwardData<Bf16>>({shape, dy.rows(), false}).run(dy, w, dx);
}

void convolution_backward_weights(const ConvolutionShape& shape, const Bf16Matrix& x, const Bf16Matrix& dy,
                                  std::span<Scalar> dweights, Write write) {
  backward_weights<Bf16>({shape, x.rows(), false}, x, dy, {.weights = dweights, .bias = {}, .write = write});
}

}  // namespace lockstep
