// A vector becomes one for each of k members of an ensemble, each with scales of its own: y[m, i] =
// scale[m, i] x[i]. The scales start from a standard normal distribution, so that members differ (Gorishniy
// et al. 2025; Wen et al. 2020).
#include <algorithm>

#include "layer_parts.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

// How many there are. Errors: ConfigError if the sample has not the shape of an ensemble's; Model finds those
// that have it by chance.
Index members_of(const Shape& sample) {
  if (sample.dims.size() != 2) throw ConfigError(kNoMembers);
  return sample.dims.front();
}

constexpr Index kMaxMembers = 1024;

class TabM final : public Layer {
 public:
  explicit TabM(TermArguments& arguments) : members_(arguments.take_index("k", 2)) {
    error_if(members_ > kMaxMembers, "k must be at most {}, found {}", kMaxMembers, members_);
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    size_ = inputs.front().size();
    scale_ = params.declare({.name = "scale",
                             .shape = {{members_, size_}},
                             .decays = false,
                             .initialiser = Initialiser::kDeviation,
                             .deviation = 1});
    return {.out = {{members_, size_}}, .flops = members_ * size_, .ensemble_part = EnsemblePart::kBegin};
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* scale = part(args.weights, scale_).data();
    for (Index row = 0; row < args.y.rows(); ++row) {
      const Scalar* x = args.x().data() + row * size_;
      for (Index m = 0; m < members_; ++m) {
        Scalar* y = args.y.data() + (row * members_ + m) * size_;
        for (Index i = 0; i < size_; ++i) y[i] = x[i] * scale[m * size_ + i];
      }
    }
  }

  void backward(const BackwardArgs& args) const override {
    const Scalar* scale = part(args.weights, scale_).data();
    const std::span<Scalar> gradient = part(args.gradient, scale_);
    if (args.write == Write::kReplace) std::ranges::fill(gradient, Scalar{0});
    if (args.dx() != nullptr) std::ranges::fill(args.dx()->values(), Scalar{0});
    for (Index row = 0; row < args.dy.rows(); ++row) {
      const Scalar* x = args.x().data() + row * size_;
      for (Index m = 0; m < members_; ++m) {
        const Scalar* dy = args.dy.data() + (row * members_ + m) * size_;
        Scalar* dscale = gradient.data() + m * size_;
        for (Index i = 0; i < size_; ++i) dscale[i] += dy[i] * x[i];
        if (args.dx() == nullptr) continue;
        Scalar* dx = args.dx()->data() + row * size_;
        for (Index i = 0; i < size_; ++i) dx[i] += dy[i] * scale[m * size_ + i];
      }
    }
  }

  // Inside the graph [N, 1, k, size], as all samples of two dimensions.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string x = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    const std::string row = graph.reshape(x, {-1, 1, 1, size_});
    return graph.add("Mul", {row, layer.tensors.front()});
  }

 private:
  Index members_;
  Index size_ = 0;
  Range scale_;
};

// A dense layer whose weight all members of an ensemble share: y[m] = ((x[m] * in[m]) W^T) * out[m] +
// bias[m], so that the weight of a member is W times a matrix of rank one (Wen et al. 2020; Gorishniy et al.
// 2025). The members of all samples are the rows of one product. Forward keeps x * in and the product for the
// backward pass.

class TabMDense final : public Layer {
 public:
  explicit TabMDense(TermArguments& arguments) : units_(arguments.take_index("units", 1)), init_(arguments) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    members_ = members_of(inputs.front());
    inputs_ = inputs.front().dims[1];
    weight_ = params.declare(init_.of(
        params, {.name = "weight", .shape = {{units_, inputs_}}, .fan_in = inputs_, .fan_out = units_}));
    const auto scale = [&](const char* name, Index size, Initialiser initialiser) {
      return params.declare(
          {.name = name, .shape = {{members_, size}}, .decays = false, .initialiser = initialiser});
    };
    in_ = scale("in_scale", inputs_, Initialiser::kOne);
    out_ = scale("out_scale", units_, Initialiser::kOne);
    bias_ = scale("bias", units_, Initialiser::kZero);
    return {.out = {{members_, units_}},
            .cache_size = members_ * (inputs_ + units_),
            .flops = 2 * members_ * units_ * inputs_,
            .ensemble_part = EnsemblePart::kInside};
  }

  // To scales and biases a sample is one row, with the members side by side.
  void forward(const ForwardArgs& args) const override {
    const Index samples = args.y.rows();
    const Index rows = samples * members_;
    Matrix scaled(args.cache.data(), rows, inputs_);
    Matrix product(args.cache.data() + rows * inputs_, rows, units_);
    scale_rows(args.x().data(), part(args.weights, in_).data(), samples, members_ * inputs_, scaled.data());
    multiply_forward(as_const(scaled), as_matrix(part(args.weights, weight_), units_, inputs_), {}, product);
    scale_rows(product.data(), part(args.weights, out_).data(), samples, members_ * units_, args.y.data());
    add_to_rows(part(args.weights, bias_), args.y);
  }

  void backward(const BackwardArgs& args) const override {
    const Index samples = args.dy.rows();
    const Index rows = samples * members_;
    const ConstMatrix scaled(args.cache.data(), rows, inputs_);
    const Scalar* const product = args.cache.data() + rows * inputs_;
    if (args.write == Write::kReplace) {
      for (const Range range : {in_, out_}) std::ranges::fill(part(args.gradient, range), Scalar{0});
    }
    const Scalar* const dy = args.dy.data();
    sum_rows(args.dy, part(args.gradient, bias_), args.write);
    add_products(dy, product, samples, members_ * units_, part(args.gradient, out_).data());
    Scalar* const scratch = layer_scratch(rows * (units_ + inputs_));
    Matrix dproduct(scratch, rows, units_);
    scale_rows(dy, part(args.weights, out_).data(), samples, members_ * units_, dproduct.data());
    Matrix dscaled(scratch + rows * units_, rows, inputs_);
    multiply_backward_data(as_const(dproduct), as_matrix(part(args.weights, weight_), units_, inputs_),
                           dscaled);
    add_products(dscaled.data(), args.x().data(), samples, members_ * inputs_,
                 part(args.gradient, in_).data());
    if (args.dx() != nullptr) {
      scale_rows(dscaled.data(), part(args.weights, in_).data(), samples, members_ * inputs_,
                 args.dx()->data());
    }
    Matrix dweight = as_matrix(part(args.gradient, weight_), units_, inputs_);
    multiply_backward_weights(as_const(dproduct), scaled, {0, units_}, dweight, args.write);
  }

  // Inside the graph [N, 1, members, size], as all samples of two dimensions.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string scaled = graph.add("Mul", {layer.inputs.front(), layer.tensors[1]});
    const std::string weight = graph.transpose(layer.tensors[0], {1, 0});
    const std::string product = graph.add("MatMul", {scaled, weight});
    return graph.add("Add", {graph.add("Mul", {product, layer.tensors[2]}), layer.tensors[3]});
  }

 private:
  static ConstMatrix as_const(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }

  Index units_;
  InitArgument init_;
  Index members_ = 0;
  Index inputs_ = 0;
  Range weight_;
  Range in_;
  Range out_;
  Range bias_;
};

// The end of an ensemble: each member has an output layer of its own, y[m] = x[m] W[m]^T + bias[m]. The
// samples of a member are gathered, so that each member is one product.

// The vectors of one member, out of those of all, or back.
using Strided = Eigen::Map<RowMajorMatrix, 0, Eigen::OuterStride<>>;
using ConstStrided = Eigen::Map<const RowMajorMatrix, 0, Eigen::OuterStride<>>;

class TabMHeads final : public Layer {
 public:
  explicit TabMHeads(TermArguments& arguments) : units_(arguments.take_index("units", 1)), init_(arguments) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    members_ = members_of(inputs.front());
    inputs_ = inputs.front().dims[1];
    weight_ = params.declare(init_.of(
        params,
        {.name = "weight", .shape = {{members_, units_, inputs_}}, .fan_in = inputs_, .fan_out = units_}));
    bias_ = params.declare({.name = "bias", .shape = {{members_, units_}}, .decays = false});
    return {.out = {{members_, units_}},
            .flops = 2 * members_ * units_ * inputs_,
            .ensemble_part = EnsemblePart::kEnd};
  }

  void forward(const ForwardArgs& args) const override {
    const Index rows = args.y.rows();
    Scalar* const scratch = layer_scratch(rows * (inputs_ + units_));
    Matrix x(scratch, rows, inputs_);
    Matrix y(scratch + rows * inputs_, rows, units_);
    for (Index m = 0; m < members_; ++m) {
      as_eigen(x) = of_member(args.x().data(), m, rows, inputs_);
      multiply_forward(x, weight_of(args.weights, m), part(args.weights, bias_of(m)), y);
      Strided(args.y.data() + m * units_, rows, units_, Eigen::OuterStride<>(members_ * units_)) =
          as_eigen(y);
    }
  }

  void backward(const BackwardArgs& args) const override {
    const Index rows = args.dy.rows();
    Scalar* const scratch = layer_scratch(rows * (2 * inputs_ + units_));
    Matrix x(scratch, rows, inputs_);
    Matrix dx(scratch + rows * inputs_, rows, inputs_);
    Matrix dy(scratch + 2 * rows * inputs_, rows, units_);
    for (Index m = 0; m < members_; ++m) {
      as_eigen(x) = of_member(args.x().data(), m, rows, inputs_);
      as_eigen(dy) = of_member(args.dy.data(), m, rows, units_);
      sum_rows(dy, part(args.gradient, bias_of(m)), args.write);
      Matrix dweight(args.gradient.data() + weight_.begin + m * units_ * inputs_, units_, inputs_);
      multiply_backward_weights(dy, x, {0, units_}, dweight, args.write);
      if (args.dx() == nullptr) continue;
      multiply_backward_data(dy, weight_of(args.weights, m), dx);
      Strided(args.dx()->data() + m * inputs_, rows, inputs_, Eigen::OuterStride<>(members_ * inputs_)) =
          as_eigen(dx);
    }
  }

  // From [N, 1, members, inputs] to [N, members, 1, inputs] and back, as MatMul takes the members one by one.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::vector<Index> turned{0, 2, 1, 3};
    const std::string x = graph.transpose(layer.inputs.front(), turned);
    const std::string weight = graph.transpose(layer.tensors[0], {0, 2, 1});
    const std::string bias = graph.reshape(layer.tensors[1], {members_, 1, units_});
    const std::string y = graph.add("Add", {graph.add("MatMul", {x, weight}), bias});
    return graph.transpose(y, turned);
  }

 private:
  ConstStrided of_member(const Scalar* all, Index m, Index rows, Index size) const {
    return {all + m * size, rows, size, Eigen::OuterStride<>(members_ * size)};
  }
  ConstMatrix weight_of(std::span<const Scalar> weights, Index m) const {
    return {weights.data() + weight_.begin + m * units_ * inputs_, units_, inputs_};
  }
  Range bias_of(Index m) const { return {bias_.begin + m * units_, bias_.begin + (m + 1) * units_}; }

  Index units_;
  InitArgument init_;
  Index members_ = 0;
  Index inputs_ = 0;
  Range weight_;
  Range bias_;
};

}  // namespace

std::vector<LayerEntry> tabm_layers() {
  return {
      {.name = "tabm",
       .signature = "tabm(k)",
       .help =
           "begins an ensemble of k members that share weights (TabM, Gorishniy et al. 2025): each member "
           "scales the features in its own way; tabm_dense and activations follow, tabm_heads ends it",
       .example = "tabm(3)",
       .example_input = {{4}},
       .make = [](TermArguments& arguments) { return std::make_unique<TabM>(arguments); }},
      {.name = "tabm_dense",
       .signature = "tabm_dense(units, init=WORD)",
       .help =
           "inside an ensemble (tabm): y = ((x * r) W^T) * s + b, where all members share W and each has its "
           "own r, s and b; init as for dense",
       .example = "tabm_dense(5)",
       .example_input = {{4}},
       .make = [](TermArguments& arguments) { return std::make_unique<TabMDense>(arguments); }},
      {.name = "tabm_heads",
       .signature = "tabm_heads(units, init=WORD)",
       .help = "ends an ensemble (tabm), as the last layer: each member has outputs of its own, training "
               "takes the mean of their losses, and the prediction is the mean of theirs (of probabilities)",
       .example = "tabm_heads(2)",
       .example_input = {{4}},
       .make = [](TermArguments& arguments) { return std::make_unique<TabMHeads>(arguments); }}};
}

}  // namespace lockstep
