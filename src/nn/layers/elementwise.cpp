// Layers that apply one function to each scalar: the activations. A function gives value(x) and either
// derivative(x, y), where y = value(x), or slope(y), which needs no x, so that the layer works in place.
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

template <class Function>
concept KnowsSlopeFromValue = requires(const Function& function) {
  function.slope(Scalar{});
};

template <class Function>
class Elementwise final : public Layer {
 public:
  Elementwise(Function function, OnnxFunction onnx)
      : function_(std::move(function)), onnx_(std::move(onnx)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    return {.out = inputs.front(),
            .in_place = KnowsSlopeFromValue<Function>,
            .reads_input = !KnowsSlopeFromValue<Function>,
            .reads_output = true,
            .flops = inputs.front().size()};
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

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return onnx_(graph, layer);
  }

 private:
  Function function_;
  OnnxFunction onnx_;
};

// `onnx`: what ONNX calls it.
template <class Function>
std::unique_ptr<Layer> make_elementwise(Function function, OnnxFunction onnx) {
  return std::make_unique<Elementwise<Function>>(std::move(function), std::move(onnx));
}

// An operation of ONNX with the attribute "alpha".
OnnxFunction onnx_with_alpha(const char* op_type, double alpha) {
  return [op_type, alpha](OnnxNodes& graph, const OnnxLayer& layer) {
    return graph.add(op_type, layer.inputs, {{"alpha", alpha}});
  };
}

// The entry of a function without arguments.
template <class Function>
LayerEntry elementwise_entry(const char* name, const char* help, const OnnxFunction& onnx) {
  return {.name = name,
          .signature = name,
          .help = help,
          .example = name,
          .example_input = {{6}},
          .make = [onnx](TermArguments&) { return make_elementwise(Function{}, onnx); }};
}

struct Relu {
  Scalar value(Scalar x) const { return x < 0 ? 0 : x; }  // NaN stays NaN
  Scalar slope(Scalar y) const { return value_if(y > 0, 1); }
};

// The largest of relu's values is relu of the largest, bit for bit, and so are the gradients (where all
// values of a window are below 0, relu lets nothing back); behind the pooling it has a fraction of the
// numbers to go through.
LayerEntry relu_entry() {
  LayerEntry entry = elementwise_entry<Relu>("relu", "max(x, 0)", onnx_operation("Relu"));
  entry.lets_first = "maxpool";
  return entry;
}

struct LeakyRelu {
  Scalar slope_below;
  Scalar value(Scalar x) const { return x < 0 ? slope_below * x : x; }
  Scalar derivative(Scalar x, Scalar) const { return x > 0 ? Scalar{1} : slope_below; }
};

struct Elu {
  Scalar alpha;
  Scalar value(Scalar x) const {
    const Scalar below = alpha * exp_minus_1_nonpositive(x > 0 ? 0 : x);
    return x > 0 ? x : below;
  }
  // Both sides are computed, so that a loop over them is vectorised.
  Scalar derivative(Scalar x, Scalar y) const {
    const Scalar below = y + alpha;
    return x > 0 ? Scalar{1} : below;
  }
};

// x times the standard normal distribution function.
struct Gelu {
  Scalar value(Scalar x) const { return x * normal_distribution(x); }
  Scalar derivative(Scalar x, Scalar) const {
    const Scalar density = normal_density(x);
    return normal_distribution_with(x, density) + x * density;
  }
};

std::string onnx_gelu(OnnxNodes& graph, const OnnxLayer& layer) {
  const std::string& x = layer.inputs.front();
  const std::string scaled = graph.add("Mul", {x, graph.add_number(1 / std::numbers::sqrt2)});
  const std::string twice = graph.add("Add", {graph.add("Erf", {scaled}), graph.add_number(1)});
  return graph.add("Mul", {graph.add("Mul", {x, graph.add_number(0.5)}), twice});
}

// With an approximation of that function by tanh, as GPT-2 has it.
struct GeluByTanh {
  static constexpr Scalar kFactor = 0.79788456080286536F;  // sqrt(2 / pi)
  static constexpr Scalar kCubic = 0.044715F;
  static Scalar inner_tanh(Scalar x) { return hyperbolic_tangent(kFactor * (x + kCubic * x * x * x)); }
  Scalar value(Scalar x) const { return Scalar{0.5F} * x * (1 + inner_tanh(x)); }
  Scalar derivative(Scalar x, Scalar) const {
    const Scalar t = inner_tanh(x);
    return Scalar{0.5F} * (1 + t + x * (1 - t * t) * kFactor * (1 + 3 * kCubic * x * x));
  }
};

std::string onnx_gelu_by_tanh(OnnxNodes& graph, const OnnxLayer& layer) {
  const std::string& x = layer.inputs.front();
  const auto times = [&](const std::string& value, double factor) {
    return graph.add("Mul", {value, graph.add_number(factor)});
  };
  const std::string cube = graph.add("Mul", {graph.add("Mul", {x, x}), x});
  const std::string inner = graph.add("Add", {x, times(cube, double{GeluByTanh::kCubic})});
  const std::string tanh = graph.add("Tanh", {times(inner, double{GeluByTanh::kFactor})});
  return graph.add("Mul", {times(x, 0.5), graph.add("Add", {tanh, graph.add_number(1)})});
}

struct Silu {
  Scalar value(Scalar x) const { return x * sigmoid(x); }
  Scalar derivative(Scalar x, Scalar) const {
    const Scalar s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

std::string onnx_silu(OnnxNodes& graph, const OnnxLayer& layer) {
  return graph.add("Mul", {layer.inputs.front(), graph.add("Sigmoid", layer.inputs)});
}

struct Softplus {
  Scalar value(Scalar x) const { return log_1_plus_exp(x); }
  Scalar derivative(Scalar x, Scalar) const { return sigmoid(x); }
};

struct Sigmoid {
  Scalar value(Scalar x) const { return sigmoid(x); }
  Scalar slope(Scalar y) const { return y * (1 - y); }
};

struct Tanh {
  Scalar value(Scalar x) const { return hyperbolic_tangent(x); }
  Scalar slope(Scalar y) const { return 1 - y * y; }
};

}  // namespace

std::vector<LayerEntry> elementwise_layers() {
  return {
      relu_entry(),
      {.name = "leaky_relu",
       .signature = "leaky_relu(slope=0.01)",
       .help = "x where x > 0, slope * x elsewhere (Maas et al. 2013)",
       .example = "leaky_relu(0.2)",
       .example_input = {{6}},
       .make =
           [](TermArguments& arguments) {
             const double slope = arguments.take_number("slope", 0.01);
             return make_elementwise(LeakyRelu{static_cast<Scalar>(slope)},
                                     onnx_with_alpha("LeakyRelu", slope));
           }},
      {.name = "elu",
       .signature = "elu(alpha=1)",
       .help = "x where x > 0, alpha (e^x - 1) elsewhere (Clevert et al. 2015)",
       .example = "elu(0.7)",
       .example_input = {{6}},
       .make =
           [](TermArguments& arguments) {
             const double alpha = arguments.take_number("alpha", 1);
             if (!(alpha > 0)) throw ConfigError("alpha must be above 0, found {}", alpha);
             return make_elementwise(Elu{static_cast<Scalar>(alpha)}, onnx_with_alpha("Elu", alpha));
           }},
      {.name = "gelu",
       .signature = "gelu(FORM)",
       .help =
           "x * Phi(x), exact (Hendrycks & Gimpel 2016); gelu(tanh) is their approximation, which GPT-2 has",
       .example = "gelu",
       .example_input = {{6}},
       .make = [](TermArguments& arguments) -> std::unique_ptr<Layer> {
         const std::string form = arguments.has_next() ? arguments.take_next("form") : "exact";
         if (form == "tanh") return make_elementwise(GeluByTanh{}, onnx_gelu_by_tanh);
         error_if(form != "exact", "its form must be exact or tanh, found {}", in_quotes(form));
         return make_elementwise(Gelu{}, onnx_gelu);
       }},
      elementwise_entry<Silu>("silu", "x / (1 + e^-x) (Elfwing et al. 2017; swish)", onnx_silu),
      elementwise_entry<Softplus>("softplus", "log(1 + e^x) (Dugas et al. 2001)", onnx_operation("Softplus")),
      elementwise_entry<Sigmoid>("sigmoid", "1 / (1 + exp(-x))", onnx_operation("Sigmoid")),
      elementwise_entry<Tanh>("tanh", "hyperbolic tangent", onnx_operation("Tanh"))};
}

}  // namespace lockstep
