// Some neighbouring features of a vector, for chains of concat and wide_deep that look at different columns.
#include "lockstep/base/errors.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

class Slice final : public Layer {
 public:
  explicit Slice(TermArguments& arguments)
      : first_(arguments.take_index("first", 0)), count_(arguments.take_index("count", 1)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const Shape& in = inputs.front();
    if (in.dims.size() != 1) throw ConfigError("expected a vector: put flatten before it");
    error_if(count_ > in.size() || first_ > in.size() - count_,
             "{} features from number {} on are more than the {} there are (the first is 0)", count_, first_,
             in.size());
    return {.out = {{count_}}, .reads_input = false};
  }

  void forward(const ForwardArgs& args) const override {
    as_eigen(args.y) = as_eigen(args.x()).middleCols(first_, count_);
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    Eigen::Map<RowMajorMatrix> dx = as_eigen(*args.dx());
    dx.setZero();
    dx.middleCols(first_, count_) = as_eigen(args.dy);
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return onnx_slice(graph, layer.inputs.front(), {first_, first_ + count_}, 1);
  }

 private:
  Index first_;
  Index count_;
};

}  // namespace

LayerEntry slice_entry() {
  return {.name = "slice",
          .signature = "slice(first, count)",
          .help = "the features first, first + 1, ..., first + count - 1 of a vector (the first is 0)",
          .example = "slice(1, 3)",
          .example_input = {{5}},
          .make = [](TermArguments& arguments) { return std::make_unique<Slice>(arguments); }};
}

}  // namespace lockstep
