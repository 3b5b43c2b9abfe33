// Convolution with Eigen, as a product of matrices (im2col): the *patch* of the input under the window at
// each position becomes a row, and output = patches * weights^T. Patches are those of one group of channels
// of a block of samples: (rows of the block x positions) x (height x width x channels of the group). Where
// each channel has a window of its own (depthwise) that is too thin for a product: there plain loops go over
// the channels of a pixel.
#include "lockstep/math/convolution.h"

#include <algorithm>

#include "lockstep/math/eigen_matrix.h"
#include "math/taps.h"
#include "scratch.h"

namespace lockstep {
namespace {

// Neighbouring samples, and one group of channels, whose patches are in memory together.
struct PatchBlock {
  Index first_row = 0;
  Index rows = 0;
  Index group = 0;
};

// Output of a block of samples and one group of channels: positions x channels of the group.
template <class Plain>
using Outputs = Eigen::Map<Plain, 0, Eigen::OuterStride<>>;

// One convolution with its patches, weights and outputs as matrices.
class PatchProduct {
 public:
  explicit PatchProduct(const ConvolutionShape& shape)
      : shape_(shape),
        positions_(shape.out_height() * shape.out_width()),
        block_rows_(std::max<Index>(1, kCachedScalars / std::max<Index>(1, positions_ * shape.fan_in()))),
        patches_(scratch(ScratchUse::kPatches, block_rows_ * positions_ * shape.fan_in())),
        weights_(scratch(ScratchUse::kWeights, shape.weight_count())) {}

  void forward(const PatchBlock& block, const ConstMatrix& x, Matrix& y) {
    gather(block, x);
    outputs<RowMajorMatrix>(block, y.data()).noalias() = patches(block) * weights(block).transpose();
  }

  void backward_data(const PatchBlock& block, const ConstMatrix& dy, Matrix& dx) {
    patches(block).noalias() = outputs<const RowMajorMatrix>(block, dy.data()) * weights(block);
    scatter_add(block, dx);
  }

  void backward_weights(const PatchBlock& block, const ConstMatrix& x, const ConstMatrix& dy) {
    gather(block, x);
    weights(block).noalias() += outputs<const RowMajorMatrix>(block, dy.data()).transpose() * patches(block);
  }

  void load_weights(std::span<const Scalar> weights) {
    walk_weights([&](Index plain, Index arranged) { weights_[arranged] = at(weights, plain); });
  }
  void clear_weights() { std::fill_n(weights_, shape_.weight_count(), Scalar{0}); }
  void store_weights(std::span<Scalar> weights, Write write) {
    walk_weights([&](Index plain, Index arranged) {
      Scalar& weight = at(weights, plain);
      weight = write == Write::kReplace ? weights_[arranged] : weight + weights_[arranged];
    });
  }

  // Calls work(block) for all samples and groups.
  template <class Work>
  void for_each_block(Index rows, const Work& work) const {
    for (Index first = 0; first < rows; first += block_rows_) {
      const Index count = std::min(block_rows_, rows - first);
      for (Index group = 0; group < shape_.groups; ++group) work(PatchBlock{first, count, group});
    }
  }

 private:
  // The patches of a block fit into a second-level cache.
  static constexpr Index kCachedScalars = 1 << 17;

  // patches = what is under the window in x; 0 in the padding
  void gather(const PatchBlock& block, const ConstMatrix& x) {
    const Index row_size = positions_ * shape_.fan_in();
    std::fill_n(patches_, block.rows * row_size, Scalar{0});
    for (Index row = 0; row < block.rows; ++row) {
      const Scalar* sample = x.data() + (block.first_row + row) * x.cols();
      Scalar* sample_patches = patches_ + row * row_size;
      walk_patches(block.group, [&](Index patch_offset, Index in_offset, Index length) {
        for (Index i = 0; i < length; ++i) sample_patches[patch_offset + i] = sample[in_offset + i];
      });
    }
  }

  // dx += each patch, where it came from
  void scatter_add(const PatchBlock& block, Matrix& dx) const {
    for (Index row = 0; row < block.rows; ++row) {
      Scalar* sample = dx.data() + (block.first_row + row) * dx.cols();
      const Scalar* sample_patches = patches_ + row * positions_ * shape_.fan_in();
      walk_patches(block.group, [&](Index patch_offset, Index in_offset, Index length) {
        for (Index i = 0; i < length; ++i) sample[in_offset + i] += sample_patches[patch_offset + i];
      });
    }
  }

  // Calls visit(patch_offset, in_offset, length) for each run of scalars of one sample that stand side by
  // side both in its patches and in the sample. The padding is in no run.
  template <class Visit>
  void walk_patches(Index group, const Visit& visit) const {
    const ConvolutionShape& s = shape_;
    const Index channels = s.in_channels / s.groups;
    const bool pixels_touch = s.groups == 1 && s.horizontal.dilation == 1;
    Index tap_row = 0;  // offset of a row of taps in the patches
    for (Index out_y = 0; out_y < s.out_height(); ++out_y) {
      for (Index out_x = 0; out_x < s.out_width(); ++out_x) {
        const Range columns = s.horizontal.taps_inside(out_x, s.in_width);
        const Index step = pixels_touch ? columns.size() : 1;
        for (Index tap_y = 0; tap_y < s.vertical.size; ++tap_y, tap_row += s.horizontal.size * channels) {
          const Index y = s.vertical.input_position(out_y, tap_y);
          if (y < 0 || y >= s.in_height) continue;
          for (Index tap_x = columns.begin; tap_x < columns.end; tap_x += step) {
            const Index pixel = y * s.in_width + s.horizontal.input_position(out_x, tap_x);
            visit(tap_row + tap_x * channels, pixel * s.in_channels + group * channels, step * channels);
          }
        }
      }
    }
  }

  // Calls visit(plain, arranged) for each weight: its offset in the order of the arena, and in that of a
  // patch, [out][height][width][in].
  template <class Visit>
  void walk_weights(const Visit& visit) const {
    const Index channels = shape_.in_channels / shape_.groups;
    const Index taps = shape_.vertical.size * shape_.horizontal.size;
    for (Index out = 0; out < shape_.out_channels; ++out) {
      for (Index in = 0; in < channels; ++in) {
        for (Index tap = 0; tap < taps; ++tap) {
          visit((out * channels + in) * taps + tap, (out * taps + tap) * channels + in);
        }
      }
    }
  }

  Index group_out() const { return shape_.out_channels / shape_.groups; }
  Eigen::Map<RowMajorMatrix> patches(const PatchBlock& block) {
    return {patches_, block.rows * positions_, shape_.fan_in()};
  }
  Eigen::Map<RowMajorMatrix> weights(const PatchBlock& block) {
    const Index size = group_out() * shape_.fan_in();
    return {weights_ + block.group * size, group_out(), shape_.fan_in()};
  }
  template <class Plain, class Pointer>
  Outputs<Plain> outputs(const PatchBlock& block, Pointer samples) const {
    return {samples + block.first_row * shape_.out_size() + block.group * group_out(),
            block.rows * positions_, group_out(), Eigen::OuterStride<>(shape_.out_channels)};
  }

  ConvolutionShape shape_;
  Index positions_;
  Index block_rows_;  // most rows of a block
  Scalar* patches_;
  Scalar* weights_;
};

bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.in_channels && shape.groups == shape.out_channels;
}

// Calls visit(in, out, weight) for each sample, position and pixel under the window: where the numbers of the
// first channel are in x, in y, and among weights as [height][width][channel].
template <class Visit>
void walk_depthwise(const ConvolutionShape& s, Index rows, const Visit& visit) {
  const WindowWalk walk{
      .height = s.in_height, .width = s.in_width, .vertical = s.vertical, .horizontal = s.horizontal};
  const Index channels = s.in_channels;
  for (Index sample = 0; sample < rows; ++sample) {
    walk_taps(walk, [&, in = sample * s.in_size(), out = sample * s.out_size()](const Tap& tap) {
      visit(in + tap.in * channels, out + tap.out * channels, tap.weight * channels);
    });
  }
}

// [channel][height][width] as [height][width][channel]
const Scalar* arrange_depthwise(const ConvolutionShape& s, std::span<const Scalar> weights) {
  Scalar* arranged = scratch(ScratchUse::kWeights, s.weight_count());
  Matrix by_taps(arranged, s.fan_in(), s.out_channels);
  as_eigen(by_taps) = as_eigen(as_matrix(weights, s.out_channels, s.fan_in())).transpose();
  return arranged;
}

// sum += a * b, channel by channel
void add_products(const Scalar* a, const Scalar* b, Index channels, Scalar* sum) {
  for (Index c = 0; c < channels; ++c) sum[c] += a[c] * b[c];
}

void depthwise_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                const ConvolutionGradient& gradient) {
  Matrix sums(scratch(ScratchUse::kWeights, shape.weight_count()), shape.fan_in(), shape.out_channels);
  std::ranges::fill(sums.values(), Scalar{0});
  walk_depthwise(shape, x.rows(), [&](Index in, Index out, Index weight) {
    add_products(x.data() + in, dy.data() + out, shape.in_channels, sums.data() + weight);
  });
  Matrix weights = as_matrix(gradient.weights, shape.out_channels, shape.fan_in());
  if (gradient.write == Write::kReplace) {
    as_eigen(weights) = as_eigen(sums).transpose();
  } else {
    as_eigen(weights) += as_eigen(sums).transpose();
  }
}

Index pixels(const ConvolutionShape& shape, Index rows) {
  return rows * shape.out_height() * shape.out_width();
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x,
                         const ConvolutionWeights<Scalar>& w, std::span<const Scalar> bias, Matrix& y) {
  if (is_depthwise(shape)) {
    const Scalar* weights = arrange_depthwise(shape, w.values);
    std::ranges::fill(y.values(), Scalar{0});
    walk_depthwise(shape, x.rows(), [&](Index in, Index out, Index weight) {
      add_products(x.data() + in, weights + weight, shape.in_channels, y.data() + out);
    });
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
  std::ranges::fill(dx.values(), Scalar{0});
  if (is_depthwise(shape)) {
    const Scalar* weights = arrange_depthwise(shape, w.values);
    walk_depthwise(shape, dy.rows(), [&](Index in, Index out, Index weight) {
      add_products(dy.data() + out, weights + weight, shape.in_channels, dx.data() + in);
    });
    return;
  }
  PatchProduct product(shape);
  product.load_weights(w.values);
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
