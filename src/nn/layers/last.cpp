// The last position of a sequence that counts.
#include <algorithm>
#include <numeric>
#include <vector>

#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "scratch.h"

namespace lockstep {
namespace {

class Last final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    sequence_ = expect_sequence(inputs.front());
    return {.out = {{sequence_.channels}}, .reads_input = false};
  }

  void forward(const ForwardArgs& args) const override {
    std::ranges::fill(args.y.values(), Scalar{0});
    for_each_last(args.lengths, args.y.rows(), [&](Index in, Index out) {
      std::copy_n(args.x().data() + in, sequence_.channels, args.y.data() + out);
    });
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    std::ranges::fill(args.dx()->values(), Scalar{0});
    for_each_last(args.lengths, args.dy.rows(), [&](Index in, Index out) {
      std::copy_n(args.dy.data() + out, sequence_.channels, args.dx()->data() + in);
    });
  }

  bool takes_sequences() const override { return true; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    if (!layer.lengths.empty()) return add_last(graph, layer);
    const Range last{sequence_.positions - 1, sequence_.positions};
    return graph.flatten(onnx_slice(graph, layer.inputs.front(), last, 1));
  }

 private:
  // The sum over all positions, of which the last that counts is the only one that is not 0.
  std::string add_last(OnnxNodes& graph, const OnnxLayer& layer) const {
    std::vector<Index> lengths(static_cast<std::size_t>(sequence_.positions));
    std::iota(lengths.begin(), lengths.end(), Index{1});
    const std::string is_last = graph.add("Equal", {onnx_lengths(graph, layer), graph.add_list(lengths)});
    const std::string alone = graph.add("Where", {graph.add("Unsqueeze", {is_last, graph.add_list({2})}),
                                                  layer.inputs.front(), graph.add_number(0)});
    return graph.flatten(graph.add("ReduceSum", {alone, graph.add_list({1})}));
  }

  // Calls visit(where its last position begins, where its output does) for each sample that has one.
  template <class Visit>
  void for_each_last(const Lengths& lengths, Index rows, const Visit& visit) const {
    for (Index row = 0; row < rows; ++row) {
      const Index count = lengths.of(row, sequence_.positions);
      if (count == 0) continue;
      visit((row * sequence_.positions + count - 1) * sequence_.channels, row * sequence_.channels);
    }
  }

  SequenceShape sequence_;
};

}  // namespace

LayerEntry last_entry() {
  return {.name = "last",
          .signature = "last",
          .help = "the last position of a sequence that counts, as a vector; zeros where none does",
          .example = "last",
          .example_input = SequenceShape{.positions = 2, .channels = 3}.shape(),
          .make = [](TermArguments&) { return std::make_unique<Last>(); }};
}

}  // namespace lockstep
