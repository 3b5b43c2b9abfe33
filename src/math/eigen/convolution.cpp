// Convolution with Eigen: patches and a product of matrices, or plain loops where each channel stands alone.
#include "lockstep/math/convolution.h"

#include <algorithm>

#include "depthwise.h"
#include "lockstep/math/eigen_matrix.h"
#include "patches.h"

namespace lockstep {
namespace {

// Output of a block of samples and one group of channels: positions x channels of the group.
template <class Plain>
using Outputs = Eigen::Map<Plain, 0, Eigen::OuterStride<>>;

// One convolution with its patches, weights and outputs as matrices.
class PatchProduct {
 public:
  explicit PatchProduct(const ConvolutionShape& shape)
      : shape_(shape),
        layout_(shape),
        patches_(scratch(ScratchUse::kPatches, layout_.size())),
        weights_(scratch(ScratchUse::kWeights, shape.weight_count())) {}

  void forward(const PatchBlock& block, const ConstMatrix& x, Matrix& y) {
    layout_.gather(block, x, patches_);
    outputs<RowMajorMatrix>(block, y.data()).noalias() = patches(block) * weights(block).transpose();
  }

  void backward_data(const PatchBlock& block, const ConstMatrix& dy, Matrix& dx) {
    patches(block).noalias() = outputs<const RowMajorMatrix>(block, dy.data()) * weights(block);
    layout_.scatter_add(block, patches_, dx);
  }

  void backward_weights(const PatchBlock& block, const ConstMatrix& x, const ConstMatrix& dy) {
    layout_.gather(block, x, patches_);
    weights(block).noalias() += outputs<const RowMajorMatrix>(block, dy.data()).transpose() * patches(block);
  }

  void load_weights(std::span<const Scalar> weights) { layout_.arrange(weights, weights_); }
  void clear_weights() { std::fill_n(weights_, shape_.weight_count(), Scalar{0}); }
  void store_weights(std::span<Scalar> weights, Write write) { layout_.restore(weights_, weights, write); }

  // Calls work(block) for all samples and groups.
  template <class Work>
  void for_each_block(Index rows, const Work& work) const {
    for (Index first = 0; first < rows; first += layout_.block_rows()) {
      const Index count = std::min(layout_.block_rows(), rows - first);
      for (Index group = 0; group < shape_.groups; ++group) work(PatchBlock{first, count, group});
    }
  }

 private:
  Eigen::Map<RowMajorMatrix> patches(const PatchBlock& block) {
    return {patches_, block.rows * layout_.positions(), layout_.patch()};
  }
  Eigen::Map<RowMajorMatrix> weights(const PatchBlock& block) {
    const Index size = layout_.group_out() * layout_.patch();
    return {weights_ + block.group * size, layout_.group_out(), layout_.patch()};
  }
  template <class Plain, class Pointer>
  Outputs<Plain> outputs(const PatchBlock& block, Pointer samples) const {
    return {samples + block.first_row * shape_.out_size() + block.group * layout_.group_out(),
            block.rows * layout_.positions(), layout_.group_out(), Eigen::OuterStride<>(shape_.out_channels)};
  }

  ConvolutionShape shape_;
  PatchLayout layout_;
  Scalar* patches_;
  Scalar* weights_;
};

Index pixels(const ConvolutionShape& shape, Index rows) {
  return rows * shape.out_height() * shape.out_width();
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x,
                         const ConvolutionWeights<Scalar>& w, std::span<const Scalar> bias, Matrix& y) {
  if (is_depthwise(shape)) {
    depthwise_forward(shape, x, w.values, y);
  } else {
    PatchProduct product(shape);
    product.load_weights(w.values);
    product.for_each_block(x.rows(), [&](const PatchBlock& block) { product.forward(block, x, y); });
  }
  Matrix y_pixels(y.data(), pixels(shape, y.rows()), shape.out_channels);
  add_to_rows(bias, y_pixels);
}

void convolution_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                               const ConvolutionWeights<Scalar>& w, Matrix& dx) {
  if (is_depthwise(shape)) return depthwise_backward_data(shape, dy, w.values, dx);
  PatchProduct product(shape);
  product.load_weights(w.values);
  std::ranges::fill(dx.values(), Scalar{0});
  product.for_each_block(dy.rows(), [&](const PatchBlock& block) { product.backward_data(block, dy, dx); });
}

void convolution_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                  const ConvolutionGradient& gradient) {
  if (is_depthwise(shape)) {
    depthwise_backward_weights(shape, x, dy, gradient);
  } else {
    PatchProduct product(shape);
    product.clear_weights();
    product.for_each_block(x.rows(),
                           [&](const PatchBlock& block) { product.backward_weights(block, x, dy); });
    product.store_weights(gradient.weights, gradient.write);
  }
  const ConstMatrix dy_pixels(dy.data(), pixels(shape, dy.rows()), shape.out_channels);
  sum_rows(dy_pixels, gradient.bias, gradient.write);
}

}  // namespace lockstep
