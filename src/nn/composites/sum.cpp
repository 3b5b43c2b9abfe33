#include "sum.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

class Sum final : public Layer, public OnnxWords {
 public:
  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    for (const Shape& other : inputs) {
      if (other == inputs.front()) continue;
      throw ConfigError(fmt::format("cannot add {} and {}: both must give the same shape",
                                    to_string(inputs.front()), to_string(other)));
    }
    flops_ = inputs.front().size() * static_cast<Index>(inputs.size() - 1);
    return inputs.front();
  }

  void forward(const ForwardArgs& args) const override {
    Array y = as_array(args.y);
    y = as_array(args.inputs[0]) + as_array(args.inputs[1]);
    for (const ConstMatrix& more : args.inputs.subspan(2)) y += as_array(more);
  }

  void backward(const BackwardArgs& args) const override {
    for (Matrix* dinput : args.dinputs) {
      if (dinput != nullptr) as_array(*dinput) = as_array(args.dy);
    }
  }

  bool reads_input() const override { return false; }
  Operation operation() const override { return {.name = "sum", .attributes = {}}; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Sum", layer.inputs);
  }
  Index flops() const override { return flops_; }

 private:
  Index flops_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_sum() {
  return std::make_unique<Sum>();
}

void expect_chains(const GraphBuilder& graph, const Term& term, const std::string& path, std::size_t count) {
  if (count == 0 ? term.chains.size() >= 2 : term.chains.size() == count) return;
  throw graph.error(path, term.text,
                    fmt::format("{} chain{} of layers between '|', expected {}", term.chains.size(),
                                term.chains.size() == 1 ? "" : "s",
                                count == 0 ? std::string("at least 2") : std::to_string(count)));
}

}  // namespace lockstep
