// A dense layer whose weight all members of an ensemble share: y[m] = ((x[m] * in[m]) W^T) * out[m] +
// bias[m], so that the weight of a member is W times a matrix of rank one (Wen et al. 2020; Gorishniy et al.
// 2025). The members of all samples are the rows of one product. Forward keeps x * in and the product for the
// backward pass.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "members.h"

namespace lockstep {
namespace {

// to[row] = from[row] * scale[member of the row]
void scale_rows(const Scalar* from, const Scalar* scale, Index rows, Index members, Index size, Scalar* to) {
  for (Index row = 0; row < rows; ++row) {
    const Scalar* own = scale + (row % members) * size;
    for (Index i = 0; i < size; ++i) to[row * size + i] = from[row * size + i] * own[i];
  }
}

// sums[member] += a[row] * b[row] over the rows of each member.
void add_products(const Scalar* a, const Scalar* b, Index rows, Index members, Index size, Scalar* sums) {
  for (Index row = 0; row < rows; ++row) {
    Scalar* own = sums + (row % members) * size;
    for (Index i = 0; i < size; ++i) own[i] += a[row * size + i] * b[row * size + i];
  }
}

class TabMDense final : public Layer, public OnnxWords {
 public:
  explicit TabMDense(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)), init_(arguments.take_word("init", "")) {
    if (!init_.empty()) parse_initialiser(init_);
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    members_ = members_of(inputs.front());
    inputs_ = inputs.front().dims[1];
    weight_ = params.declare(
        {.name = "weight",
         .shape = {{units_, inputs_}},
         .initialiser = init_.empty() ? params.default_initialiser() : parse_initialiser(init_),
         .fan_in = inputs_,
         .fan_out = units_});
    const auto scale = [&](const char* name, Index size, Initialiser initialiser) {
      return params.declare(
          {.name = name, .shape = {{members_, size}}, .decays = false, .initialiser = initialiser});
    };
    in_ = scale("in_scale", inputs_, Initialiser::kOne);
    out_ = scale("out_scale", units_, Initialiser::kOne);
    bias_ = scale("bias", units_, Initialiser::kZero);
    return {{members_, units_}};
  }

  void forward(const ForwardArgs& args) const override {
    const Index rows = args.y.rows() * members_;
    Matrix scaled(args.cache.data(), rows, inputs_);
    Matrix product(args.cache.data() + rows * inputs_, rows, units_);
    scale_rows(args.x().data(), part(args.weights, in_).data(), rows, members_, inputs_, scaled.data());
    multiply_forward(as_const(scaled), as_matrix(part(args.weights, weight_), units_, inputs_), {}, product);
    const Scalar* out = part(args.weights, out_).data();
    const Scalar* bias = part(args.weights, bias_).data();
    for (Index row = 0; row < rows; ++row) {
      const Index own = (row % members_) * units_;
      const Scalar* from = product.data() + row * units_;
      Scalar* y = args.y.data() + row * units_;
      for (Index i = 0; i < units_; ++i) y[i] = from[i] * out[own + i] + bias[own + i];
    }
  }

  void backward(const BackwardArgs& args) const override {
    const Index rows = args.dy.rows() * members_;
    const ConstMatrix scaled(args.cache.data(), rows, inputs_);
    const ConstMatrix product(args.cache.data() + rows * inputs_, rows, units_);
    if (args.write == Write::kReplace) {
      for (const Range range : {in_, out_, bias_}) std::ranges::fill(part(args.gradient, range), Scalar{0});
    }
    const Scalar* dy = args.dy.data();
    sum_members(dy, rows, part(args.gradient, bias_).data());
    add_products(dy, product.data(), rows, members_, units_, part(args.gradient, out_).data());
    thread_local AlignedBuffer<Scalar> scratch;
    if (scratch.size() < rows * (units_ + inputs_))
      scratch = AlignedBuffer<Scalar>(rows * (units_ + inputs_));
    Matrix dproduct(scratch.data(), rows, units_);
    scale_rows(dy, part(args.weights, out_).data(), rows, members_, units_, dproduct.data());
    Matrix dscaled(scratch.data() + rows * units_, rows, inputs_);
    multiply_backward_data(as_const(dproduct), as_matrix(part(args.weights, weight_), units_, inputs_),
                           dscaled);
    add_products(dscaled.data(), args.x().data(), rows, members_, inputs_, part(args.gradient, in_).data());
    if (args.dx() != nullptr) {
      scale_rows(dscaled.data(), part(args.weights, in_).data(), rows, members_, inputs_, args.dx()->data());
    }
    Matrix dweight = as_matrix(part(args.gradient, weight_), units_, inputs_);
    multiply_backward_weights(as_const(dproduct), scaled, {0, units_}, dweight, args.write);
  }

  Operation operation() const override {
    return {.name = "tabm_dense", .tensors = {weight_, in_, out_, bias_}};
  }
  // Inside the graph [N, 1, members, size], as all samples of two dimensions.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string scaled = graph.add("Mul", {layer.inputs.front(), layer.tensors[1]});
    const std::string weight =
        graph.add("Transpose", {layer.tensors[0]}, {{"perm", std::vector<Index>{1, 0}}});
    const std::string product = graph.add("MatMul", {scaled, weight});
    return graph.add("Add", {graph.add("Mul", {product, layer.tensors[2]}), layer.tensors[3]});
  }
  Index cache_size() const override { return members_ * (inputs_ + units_); }
  Index flops() const override { return 2 * members_ * units_ * inputs_; }

 private:
  static ConstMatrix as_const(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }

  void sum_members(const Scalar* dy, Index rows, Scalar* sums) const {
    for (Index row = 0; row < rows; ++row) {
      Scalar* own = sums + (row % members_) * units_;
      for (Index i = 0; i < units_; ++i) own[i] += dy[row * units_ + i];
    }
  }

  Index units_;
  std::string init_;
  Index members_ = 0;
  Index inputs_ = 0;
  Range weight_;
  Range in_;
  Range out_;
  Range bias_;
};

}  // namespace

LayerEntry tabm_dense_entry() {
  return {
      .name = "tabm_dense",
      .signature = "tabm_dense(units, init=WORD)",
      .help =
          "inside an ensemble (tabm): y = ((x * r) W^T) * s + b, where all members share W and each has its "
          "own r, s and b; init as for dense",
      .example = "tabm_dense(5)",
      .example_input = {{3, 4}},
      .make = [](TermArguments& arguments) { return std::make_unique<TabMDense>(arguments); }};
}

}  // namespace lockstep
