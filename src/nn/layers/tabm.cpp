// A vector becomes one for each of k members of an ensemble, each with scales of its own: y[m, i] =
// scale[m, i] x[i]. The scales start from a standard normal distribution, so that members differ (Gorishniy
// et al. 2025; Wen et al. 2020).
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/ensemble.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

constexpr Index kMaxMembers = 1024;

class TabM final : public Layer, public OnnxWords, public EnsembleLayer {
 public:
  explicit TabM(TermArguments& arguments) : members_(arguments.take_index("k", 2)) {
    if (members_ > kMaxMembers)
      throw ConfigError(fmt::format("k must be at most {}, found {}", kMaxMembers, members_));
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    size_ = inputs.front().size();
    scale_ = params.declare({.name = "scale",
                             .shape = {{members_, size_}},
                             .decays = false,
                             .initialiser = Initialiser::kDeviation,
                             .deviation = 1});
    return {{members_, size_}};
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

  EnsemblePart ensemble_part() const override { return EnsemblePart::kBegin; }
  Operation operation() const override {
    return {.name = "tabm", .attributes = {{"k", static_cast<double>(members_)}}, .tensors = {scale_}};
  }
  // Inside the graph [N, 1, k, size], as all samples of two dimensions.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string x = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    const std::string row = graph.add("Reshape", {x, graph.add_list({-1, 1, 1, size_})});
    return graph.add("Mul", {row, layer.tensors.front()});
  }
  Index flops() const override { return members_ * size_; }

 private:
  Index members_;
  Index size_ = 0;
  Range scale_;
};

}  // namespace

LayerEntry tabm_entry() {
  return {.name = "tabm",
          .signature = "tabm(k)",
          .help =
              "begins an ensemble of k members that share weights (TabM, Gorishniy et al. 2025): each member "
              "scales the features in its own way; tabm_dense and activations follow, tabm_heads ends it",
          .example = "tabm(3)",
          .example_input = {{4}},
          .make = [](TermArguments& arguments) { return std::make_unique<TabM>(arguments); }};
}

}  // namespace lockstep
