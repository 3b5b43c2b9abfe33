// Layers for the numbers of a record, each of which has weights of its own.
#include <algorithm>

#include "layer_parts.h"
#include "lockstep/math/elementary.h"

namespace lockstep {
namespace {

// y = weight * x by feature: a first layer that learns how much each feature counts, with a rate of its own.

class FeatureScale final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const Shape& in = inputs.front();
    size_ = in.size();
    weight_ = params.declare(
        {.name = "weight", .shape = {{size_}}, .decays = false, .initialiser = Initialiser::kOne});
    return {.out = in, .flops = size_};
  }

  void forward(const ForwardArgs& args) const override {
    scale_rows(args.x().data(), part(args.weights, weight_).data(), args.y.rows(), size_, args.y.data());
  }

  void backward(const BackwardArgs& args) const override {
    const std::span<Scalar> gradient = part(args.gradient, weight_);
    if (args.write == Write::kReplace) std::ranges::fill(gradient, Scalar{0});
    add_products(args.dy.data(), args.x().data(), args.dy.rows(), size_, gradient.data());
    if (args.dx() == nullptr) return;
    scale_rows(args.dy.data(), part(args.weights, weight_).data(), args.dy.rows(), size_, args.dx()->data());
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const Shape& in = layer.in.front();
    if (in.dims.size() == 1) return graph.add("Mul", {layer.inputs.front(), layer.tensors.front()});
    std::vector<Index> shape{1};
    shape.insert(shape.end(), in.dims.begin(), in.dims.end());
    const std::string weight = graph.reshape(layer.tensors.front(), shape);
    return graph.add("Mul", {layer.inputs.front(), onnx_ordered(graph, weight, in)});
  }

 private:
  Index size_ = 0;
  Range weight_;
};

// Periodic embeddings of numbers, PLR (Gorishniy, Rubachev & Babenko 2022): each feature x has frequencies f
// of its own, which are learned, and a linear layer of its own with relu behind them:
//
//   y = relu(W [cos(2 pi f x), sin(2 pi f x)] + b)
//
// Forward keeps the cosines and sines: of each feature first all cosines, then all sines. A weight is stored
// as inputs x width, so that the outputs of a feature lie side by side.

constexpr double kTwoPi = 6.283185307179586;
constexpr double kMinSigma = 1e-4;

class Periodic final : public Layer {
 public:
  explicit Periodic(TermArguments& arguments)
      : width_(arguments.take_index("width", 1)),
        count_(arguments.take_index("frequencies", 1, 16)),
        sigma_(arguments.take_number("sigma", 0.1)) {
    error_if(!(sigma_ >= kMinSigma && sigma_ <= 1), "sigma must be from {} to 1, found {}", kMinSigma,
             sigma_);
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    features_ = inputs.front().size();
    frequencies_ = params.declare({.name = "frequencies",
                                   .shape = {{features_, count_}},
                                   .decays = false,
                                   .initialiser = Initialiser::kDeviation,
                                   .deviation = sigma_});
    weight_ = params.declare({.name = "weight",
                              .shape = {{features_, 2 * count_, width_}},
                              .initialiser = params.default_initialiser(),
                              .fan_in = 2 * count_,
                              .fan_out = width_});
    bias_ = params.declare({.name = "bias", .shape = {{features_, width_}}, .decays = false});
    return {.out = {{features_ * width_}},
            .reads_output = true,
            .cache_size = features_ * 2 * count_,
            .flops = features_ * count_ * (4 * width_ + 20)};
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* weight = part(args.weights, weight_).data();
    const Scalar* bias = part(args.weights, bias_).data();
    add_waves(args);
    for (Index i = 0; i < args.x().size(); ++i) {
      const Index feature = i % features_;
      const Scalar* waves = args.cache.data() + i * 2 * count_;
      Scalar* y = args.y.data() + i * width_;
      std::copy_n(bias + feature * width_, width_, y);
      for (Index k = 0; k < 2 * count_; ++k) {
        const Scalar* w = weight + (feature * 2 * count_ + k) * width_;
        for (Index j = 0; j < width_; ++j) y[j] += w[j] * waves[k];
      }
      for (Index j = 0; j < width_; ++j) y[j] = y[j] < 0 ? 0 : y[j];  // NaN stays NaN
    }
  }

  void backward(const BackwardArgs& args) const override {
    if (args.write == Write::kReplace) {
      for (const Range range : {frequencies_, weight_, bias_})
        std::ranges::fill(part(args.gradient, range), Scalar{0});
    }
    for (Index i = 0; i < args.x().size(); ++i) backward_of(args, i);
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string rows = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    const std::string x = graph.reshape(rows, {-1, features_, 1});
    const std::string turns = graph.add("Mul", {x, layer.tensors[0]});
    const std::string angles = graph.add("Mul", {turns, graph.add_number(kTwoPi)});
    const std::string waves =
        graph.add("Concat", {graph.add("Cos", {angles}), graph.add("Sin", {angles})}, {{"axis", Index{2}}});
    const std::string each = graph.reshape(waves, {-1, features_, 1, 2 * count_});
    const std::string bias = graph.reshape(layer.tensors[2], {features_, 1, width_});
    const std::string sums = graph.add("Add", {graph.add("MatMul", {each, layer.tensors[1]}), bias});
    return graph.flatten(graph.add("Relu", {sums}));
  }

 private:
  void add_waves(const ForwardArgs& args) const {
    const Scalar* frequencies = part(args.weights, frequencies_).data();
    for (Index i = 0; i < args.x().size(); ++i) {
      const Scalar* own = frequencies + (i % features_) * count_;
      const Scalar x = args.x().data()[i];
      Scalar* cosines = args.cache.data() + i * 2 * count_;
      Scalar* sines = cosines + count_;
      for (Index k = 0; k < count_; ++k) {
        const SineCosine wave = sine_cosine_of_turns(own[k] * x);
        cosines[k] = wave.cosine;
        sines[k] = wave.sine;
      }
    }
  }

  // Adds the gradients of x[i], which is feature i % features_.
  void backward_of(const BackwardArgs& args, Index i) const {
    const Index feature = i % features_;
    const Scalar* waves = args.cache.data() + i * 2 * count_;
    const Scalar* y = args.y.data() + i * width_;
    const Scalar* dy = args.dy.data() + i * width_;
    const Index first = feature * 2 * count_ * width_;
    const Scalar* weight = part(args.weights, weight_).data() + first;
    Scalar* dweight = part(args.gradient, weight_).data() + first;
    Scalar* dbias = part(args.gradient, bias_).data() + feature * width_;
    const Scalar* frequencies = part(args.weights, frequencies_).data() + feature * count_;
    Scalar* dfrequencies = part(args.gradient, frequencies_).data() + feature * count_;
    Scalar* const through = layer_scratch(width_);  // what relu lets back
    for (Index j = 0; j < width_; ++j) through[j] = value_if(y[j] > 0, dy[j]);
    for (Index j = 0; j < width_; ++j) dbias[j] += through[j];
    const Scalar x = args.x().data()[i];
    Scalar dx = 0;
    const auto slope = [&](Index k) {
      Scalar sum = 0;
      for (Index j = 0; j < width_; ++j) {
        dweight[k * width_ + j] += through[j] * waves[k];
        sum += through[j] * weight[k * width_ + j];
      }
      return sum;
    };
    for (Index k = 0; k < count_; ++k) {
      const Scalar dcosine = slope(k);
      const Scalar dsine = slope(count_ + k);
      const Scalar dturns = static_cast<Scalar>(kTwoPi) * (dsine * waves[k] - dcosine * waves[count_ + k]);
      dfrequencies[k] += dturns * x;
      dx += dturns * frequencies[k];
    }
    if (args.dx() != nullptr) args.dx()->data()[i] = dx;
  }

  Index width_;
  Index count_;
  double sigma_;
  Index features_ = 0;
  Range frequencies_;
  Range weight_;
  Range bias_;
};

}  // namespace

std::vector<LayerEntry> feature_layers() {
  return {
      {.name = "scale",
       .signature = "scale",
       .help =
           "y = weight * x by feature, from 1 on: as the first layer it learns how much each feature counts "
           "(Holzmueller et al. 2024), at a rate of its own by train.lr_multiplier",
       .example = "scale",
       .example_input = {{6}},
       .make = [](TermArguments&) { return std::make_unique<FeatureScale>(); }},
      {.name = "periodic",
       .signature = "periodic(width, frequencies=16, sigma=0.1)",
       .help = "each number x becomes relu(W [cos(2 pi f x), sin(2 pi f x)] + b), width numbers, with "
               "frequencies f of its own, which are learned and start with the deviation sigma (PLR, "
               "Gorishniy et al. 2022)",
       .example = "periodic(3, frequencies=2, sigma=0.3)",
       .example_input = {{4}},
       .make = [](TermArguments& arguments) { return std::make_unique<Periodic>(arguments); }}};
}

}  // namespace lockstep
