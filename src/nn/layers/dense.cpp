// y = x W^T + b. In bf16 x, W and dy are rounded, and nothing else.
#include <fmt/format.h>

#include <algorithm>

#include "bf16_operands.h"
#include "dense_layer.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"
#include "split_argument.h"

namespace lockstep {
namespace {

// Work between two pauses in the backward pass: about 10 ms of a fast core; twice that where each piece packs
// all weights anew.
constexpr Index kWeightsPieceFlops = Index{1} << 31;
constexpr Index kDataPieceFlops = 2 * kWeightsPieceFlops;

class Dense final : public DenseLayer {
 public:
  using DenseLayer::DenseLayer;

  void forward(const ForwardArgs& args) const override {
    const std::span<const Scalar> bias = part(args.weights, bias_);
    if (in_bf16()) {
      multiply_forward(rounded_input(args.x()), as_matrix(rounded_weight(args), units_, inputs_), bias,
                       args.y);
    } else {
      multiply_forward(args.x(), as_matrix(exact_weight(args), units_, inputs_), bias, args.y);
    }
  }

  void backward(const BackwardArgs& args) const override {
    // The bias, which lies behind the weights, comes first, so that the gradient is final from its end on.
    if (has_bias()) sum_rows(args.dy, part(args.gradient, bias_), args.write);
    if (in_bf16()) {
      const Bf16Matrix dy = rounded_output_gradient(args.dy);
      backward_weights(args, dy, rounded_input(args.x()));
      backward_data(args, dy, as_matrix(rounded_weight(args), units_, inputs_));
    } else {
      if (args.factors != nullptr) {
        leave_factors(*args.factors, args.dy, args.x());
      } else {
        backward_weights(args, args.dy, args.x());
      }
      backward_data(args, args.dy, as_matrix(exact_weight(args), units_, inputs_));
    }
  }

  WeightUse weight_use() const override {
    return in_bf16() ? WeightUse{.rounded = weight_} : WeightUse{.factored = weight_};
  }

 private:
  // A product is cut into pieces of so many rows, each of whole blocks of kernels: how depends on the batch
  // of the replica alone, and so do the bits.
  static Index rows_of_piece(Index flops, Index flops_of_row) {
    constexpr Index kRowsOfBlock = 64;
    return round_up(std::max<Index>(flops / flops_of_row, 1), kRowsOfBlock);
  }

  static void leave_factors(const FactorBuffers& to, const ConstMatrix& dy, const ConstMatrix& x) {
    std::ranges::copy(x.values(), to.x);
    transpose(dy, to.dy_t, to.stride);
  }

  template <class Operand>
  void backward_weights(const BackwardArgs& args, const Operand& dy, const Operand& x) const {
    Matrix dweight =
        as_matrix(is_tied() ? args.tied_gradient : part(args.gradient, weight_), units_, inputs_);
    const Index flops_of_row = 2 * inputs_ * std::max<Index>(args.dy.rows(), 1);
    const Index rows = rows_of_piece(kWeightsPieceFlops, flops_of_row);
    for (Index end = units_; end > 0; end = std::max<Index>(end - rows, 0)) {
      const Index begin = std::max<Index>(end - rows, 0);
      multiply_backward_weights(dy, x, {begin, end}, dweight, is_tied() ? Write::kReplace : args.write);
      args.on_ready(own_begin(begin * inputs_));
    }
  }

  template <class Operand>
  void backward_data(const BackwardArgs& args, const Operand& dy, const Operand& weight) const {
    if (args.dx() == nullptr) return;
    Matrix& dx = *args.dx();
    const Index rows = rows_of_piece(kDataPieceFlops, flops());
    for (Index begin = 0; begin < dx.rows(); begin += rows) {
      const Range piece{begin, std::min(begin + rows, dx.rows())};
      Matrix dx_rows(dx.data() + begin * inputs_, piece.size(), inputs_);
      multiply_backward_data(rows_of(dy, piece), weight, dx_rows);
      args.on_ready(own_begin(0));
    }
  }

  // The offset from which the gradients of its own tensors are final, if those of its weight are so from
  // `offset` on.
  Index own_begin(Index offset) const { return is_tied() ? bias_.begin : weight_.begin + offset; }
};

std::unique_ptr<Layer> make_dense(TermArguments& arguments) {
  if (takes_split(arguments)) return make_split_dense(arguments);
  return std::make_unique<Dense>(arguments);
}

}  // namespace

LayerEntry dense_entry() {
  return {.name = "dense",
          .signature = "dense(units, init=WORD, bias=true, tie=LAYER, split=rows)",
          .help =
              "y = x W^T + b; init: he, xavier, normal or zero for this layer; tie: the number of an earlier "
              "layer whose weight, of the same shape, is this one's too; split=rows computes a wide layer in "
              "fixed blocks of its units",
          .example = "dense(5)",
          .example_input = {{6}},
          .make = make_dense};
}

}  // namespace lockstep
