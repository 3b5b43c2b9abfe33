// Each feature is the number of a row of a table of vectors, which are put side by side. With split=rows the
// table lies in fixed blocks (split_layer.h), of which ranks may each have some; the numbers are the same.
#include <algorithm>

#include "layer_parts.h"
#include "lockstep/nn/split_layer.h"

namespace lockstep {
namespace {

// Up to here single precision holds every whole number.
constexpr Index kMaxRows = Index{1} << 24;

class Embedding : public Layer {
 public:
  explicit Embedding(TermArguments& arguments)
      : rows_(arguments.take_index("rows", 1)), width_(arguments.take_index("width", 1)), init_(arguments) {
    error_if(rows_ > kMaxRows,
             "rows must be at most {} (single precision holds no larger whole number), found {}", kMaxRows,
             rows_);
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    features_ = inputs.front().size();
    weight_ = params.declare(init_.of(params, {.name = "weight",
                                               .shape = {{rows_, width_}},
                                               .looked_up = true,
                                               .fan_in = width_,
                                               .fan_out = rows_}));
    return {.out = {{features_ * width_}}};
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* table = part(args.weights, weight_).data();
    refuse_others(args.x());
    for (Index i = 0; i < args.x().size(); ++i) {
      std::copy_n(table + row_of(args.x(), i) * width_, width_, args.y.data() + i * width_);
    }
  }

  void backward(const BackwardArgs& args) const override {
    const std::span<Scalar> gradient = part(args.gradient, weight_);
    if (args.write == Write::kReplace) std::ranges::fill(gradient, Scalar{0});
    for (Index i = 0; i < args.x().size(); ++i) {
      add_vector(args.dy.data() + i * width_, gradient.data() + row_of(args.x(), i) * width_);
    }
    // An index has no gradient.
    if (args.dx() != nullptr) std::ranges::fill(args.dx()->values(), Scalar{0});
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string rows = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    const std::string numbers = graph.add("Cast", {rows}, {{"to", kOnnxInt64}});
    const std::string vectors = graph.add("Gather", {layer.tensors.front(), numbers}, {{"axis", Index{0}}});
    return graph.flatten(vectors);
  }

 protected:
  // Errors: DataError for a feature that is the number of no row.
  void refuse_others(const ConstMatrix& x) const {
    for (Index i = 0; i < x.size(); ++i) {
      if (!is_row(x.data()[i])) refuse(x.data()[i], i % features_);
    }
  }
  // The row that feature i, of all samples, names.
  static Index row_of(const ConstMatrix& x, Index i) { return static_cast<Index>(x.data()[i]); }
  void add_vector(const Scalar* from, Scalar* to) const {
    for (Index j = 0; j < width_; ++j) to[j] += from[j];
  }

  Index rows_;
  Index width_;
  Index features_ = 0;
  Range weight_;

 private:
  // False for what is not a number.
  bool is_row(Scalar value) const {
    return value >= 0 && value < static_cast<Scalar>(rows_) &&
           value == static_cast<Scalar>(static_cast<Index>(value));
  }

  [[noreturn]] void refuse(Scalar value, Index column) const {
    throw DataError(
        "embedding({}, {}): column {} of its input (the first is 0) holds {}, expected a whole number from 0 "
        "to {}; give the layer more rows, or check that the column holds categories and is not normalised",
        rows_, width_, column, value, rows_ - 1);
  }

  InitArgument init_;
};

class SplitEmbedding final : public Embedding, public SplitLayer {
 public:
  using Embedding::Embedding;

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    blocks_ = UnitBlocks(rows_, width_);
    return Embedding::declare(inputs, params);
  }

  const SplitLayer* split() const override { return this; }
  const UnitBlocks& blocks() const override { return blocks_; }
  Range weights_of(Range blocks) const override {
    const Range rows = blocks_.units(blocks);
    return {weight_.begin + rows.begin * width_, weight_.begin + rows.end * width_};
  }

  void check_inputs(const ConstMatrix& x) const override { refuse_others(x); }
  BlockBegins find_outputs(const ConstMatrix& x) const override {
    BlockBegins begins{};
    for (Index i = 0; i < x.size(); ++i) at(begins, blocks_.block_of(row_of(x, i)) + 1) += width_;
    for (Index block = 0; block < blocks_.count(); ++block) at(begins, block + 1) += at(begins, block);
    return begins;
  }
  // All samples may name rows of one block.
  Index max_outputs(Index rows, Range blocks) const override {
    return blocks.empty() ? 0 : rows * features_ * width_;
  }
  void scatter(const ConstMatrix& x, const BlockOutputs<const Scalar>& from, Matrix& y) const override {
    for_each_vector(x, from, [&](Index i, Index /*row*/, const Scalar* vector) {
      std::copy_n(vector, width_, y.data() + i * width_);
    });
  }
  void gather(const ConstMatrix& x, const ConstMatrix& y, const BlockOutputs<Scalar>& to) const override {
    for_each_vector(x, to, [&](Index i, Index /*row*/, Scalar* vector) {
      std::copy_n(y.data() + i * width_, width_, vector);
    });
  }
  bool has_input_gradient() const override { return false; }

  void forward_blocks(const ConstMatrix& x, const SplitWeights& weights,
                      const BlockOutputs<Scalar>& y) const override {
    const Scalar* table = part(weights.exact, weight_).data();
    for_each_vector(x, y, [&](Index /*i*/, Index row, Scalar* vector) {
      std::copy_n(table + row * width_, width_, vector);
    });
  }
  void backward_bias(const ConstMatrix& /*dy*/, std::span<Scalar> /*gradient*/,
                     Write /*write*/) const override {}
  void backward_weights(const ConstMatrix& x, const BlockOutputs<const Scalar>& dy, Index block,
                        std::span<Scalar> sum, Write write) const override {
    if (write == Write::kReplace) std::ranges::fill(sum, Scalar{0});
    const Index first = blocks_.units(block).begin;
    const BlockOutputs<const Scalar> one{dy.begins, {block, block + 1}, dy.rows, dy.of(block)};
    for_each_vector(x, one, [&](Index /*i*/, Index row, const Scalar* vector) {
      add_vector(vector, sum.data() + (row - first) * width_);
    });
  }
  void backward_data(const BlockOutputs<const Scalar>& /*dy*/, const SplitWeights& /*weights*/,
                     Range /*subtree*/, const DataSum& to) const override {
    std::ranges::fill(to.sum, Scalar{0});
  }

 private:
  // `work` takes the number of a feature among those of all samples, the row of the table that it names, and
  // its vector among the outputs: for each feature whose row one of these blocks has, in order.
  template <class T, class Work>
  void for_each_vector(const ConstMatrix& x, const BlockOutputs<T>& outputs, const Work& work) const {
    std::array<T*, UnitBlocks::kMaxBlocks> next{};
    for (Index block = outputs.blocks.begin; block < outputs.blocks.end; ++block) {
      at(next, block) = outputs.of(block);
    }
    const Range rows = blocks_.units(outputs.blocks);
    for (Index i = 0; i < x.size(); ++i) {
      const Index row = row_of(x, i);
      if (!rows.contains(row)) continue;
      T*& vector = at(next, blocks_.block_of(row));
      work(i, row, vector);
      vector += width_;
    }
  }

  UnitBlocks blocks_;
};

std::unique_ptr<Layer> make_embedding(TermArguments& arguments) {
  if (takes_split(arguments)) return std::make_unique<SplitEmbedding>(arguments);
  return std::make_unique<Embedding>(arguments);
}

}  // namespace

LayerEntry embedding_entry() {
  return {
      .name = "embedding",
      .signature = "embedding(rows, width, init=WORD, split=rows)",
      .help =
          "each feature, a whole number from 0 to rows - 1, becomes a row of the weight, width numbers "
          "(PyTorch: Embedding, then Flatten); init as for dense; split=rows lays the weight out in fixed "
          "blocks of its rows, which ranks can divide",
      .example = "embedding(5, 3)",
      .example_input = {{4}},
      .make = make_embedding};
}

}  // namespace lockstep
