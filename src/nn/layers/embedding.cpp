// Each feature is the number of a row of a table of vectors, which are put side by side.
#include <fmt/format.h>

#include <algorithm>

#include "init_argument.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

// Up to here single precision holds every whole number.
constexpr Index kMaxRows = Index{1} << 24;

class Embedding final : public Layer, public OnnxWords {
 public:
  explicit Embedding(TermArguments& arguments)
      : rows_(arguments.take_index("rows", 1)),
        width_(arguments.take_index("width", 1)),
        init_(take_initialiser(arguments)) {
    if (rows_ > kMaxRows) {
      throw ConfigError(
          fmt::format("rows must be at most {} (single precision holds no larger whole "
                      "number), found {}",
                      kMaxRows, rows_));
    }
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    features_ = inputs.front().size();
    weight_ = params.declare({.name = "weight",
                              .shape = {{rows_, width_}},
                              .looked_up = true,
                              .initialiser = init_.value_or(params.default_initialiser()),
                              .fan_in = width_,
                              .fan_out = rows_});
    return {{features_ * width_}};
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* table = part(args.weights, weight_).data();
    for (Index i = 0; i < args.x().size(); ++i) {
      const Scalar value = args.x().data()[i];
      if (!is_row(value)) refuse(value, i % features_);
      std::copy_n(table + static_cast<Index>(value) * width_, width_, args.y.data() + i * width_);
    }
  }

  void backward(const BackwardArgs& args) const override {
    const std::span<Scalar> gradient = part(args.gradient, weight_);
    if (args.write == Write::kReplace) std::ranges::fill(gradient, Scalar{0});
    for (Index i = 0; i < args.x().size(); ++i) {
      Scalar* to = gradient.data() + static_cast<Index>(args.x().data()[i]) * width_;
      const Scalar* dy = args.dy.data() + i * width_;
      for (Index j = 0; j < width_; ++j) to[j] += dy[j];
    }
    // An index has no gradient.
    if (args.dx() != nullptr) args.dx()->setZero();
  }

  Operation operation() const override { return {.name = "embedding", .tensors = {weight_}}; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string rows = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    const std::string numbers = graph.add("Cast", {rows}, {{"to", kOnnxInt64}});
    const std::string vectors = graph.add("Gather", {layer.tensors.front(), numbers}, {{"axis", Index{0}}});
    return graph.add("Flatten", {vectors}, {{"axis", Index{1}}});
  }

 private:
  // False for what is not a number.
  bool is_row(Scalar value) const {
    return value >= 0 && value < static_cast<Scalar>(rows_) &&
           value == static_cast<Scalar>(static_cast<Index>(value));
  }

  [[noreturn]] void refuse(Scalar value, Index column) const {
    throw DataError(
        fmt::format("embedding({}, {}): column {} of its input (the first is 0) holds {}, expected a whole "
                    "number from 0 to {}; give the layer more rows, or check that the column holds "
                    "categories and is not normalised",
                    rows_, width_, column, value, rows_ - 1));
  }

  Index rows_;
  Index width_;
  std::optional<Initialiser> init_;
  Index features_ = 0;
  Range weight_;
};

}  // namespace

LayerEntry embedding_entry() {
  return {.name = "embedding",
          .signature = "embedding(rows, width, init=WORD)",
          .help =
              "each feature, a whole number from 0 to rows - 1, becomes a row of the weight, width numbers "
              "(PyTorch: Embedding, then Flatten); init as for dense",
          .example = "embedding(5, 3)",
          .example_input = {{4}},
          .make = [](TermArguments& arguments) { return std::make_unique<Embedding>(arguments); }};
}

}  // namespace lockstep
