// Convolution as a product of matrices (im2col): the patch of the input under the window at each position
// becomes a row, and output = patches * weights^T, for a block of samples and one group of channels at a
// time.
#include "lockstep/math/convolution.h"

#include <Eigen/Dense>
#include <algorithm>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

// Patches of so many samples are laid out at once that they fit into a second-level cache.
constexpr Index kPatchScalars = 1 << 17;

using Columns = Eigen::Map<RowMajorMatrix, 0, Eigen::OuterStride<>>;
using ConstColumns = Eigen::Map<const RowMajorMatrix, 0, Eigen::OuterStride<>>;

// Memory of a thread that only grows.
struct Scratch {
  AlignedBuffer<Scalar> patches;
  AlignedBuffer<Scalar> weights;
};

Scratch& scratch() {
  thread_local Scratch mine;
  return mine;
}

Scalar* reserve(AlignedBuffer<Scalar>& buffer, Index size) {
  if (buffer.size() < size) buffer = AlignedBuffer<Scalar>(size);
  return buffer.data();
}

// Numbers derived from a shape that the loops below share.
struct Geometry {
  explicit Geometry(const ConvolutionShape& s)
      : positions(s.out_height() * s.out_width()),
        group_in(s.in_channels / s.groups),
        group_out(s.out_channels / s.groups),
        patch(s.fan_in()),
        block_rows(std::max<Index>(1, kPatchScalars / std::max<Index>(1, positions * patch))) {}

  Index positions;   // of the window in one sample
  Index group_in;    // channels
  Index group_out;   // channels
  Index patch;       // scalars under the window, of one group
  Index block_rows;  // samples
};

// Calls visit(patch_offset, in_offset) for each pixel of each patch of one sample: where its channels stand
// in the patches and in the sample, or -1 for the padding.
template <class Visit>
void walk_patches(const ConvolutionShape& s, Index group, const Visit& visit) {
  const Index channels = s.in_channels / s.groups;
  Index patch_offset = 0;
  for (Index out_y = 0; out_y < s.out_height(); ++out_y) {
    for (Index out_x = 0; out_x < s.out_width(); ++out_x) {
      for (Index tap_y = 0; tap_y < s.vertical.size; ++tap_y) {
        const Index y = s.vertical.place(out_y, tap_y);
        for (Index tap_x = 0; tap_x < s.horizontal.size; ++tap_x) {
          const Index x = s.horizontal.place(out_x, tap_x);
          const bool inside = 0 <= y && y < s.in_height && 0 <= x && x < s.in_width;
          visit(patch_offset, inside ? (y * s.in_width + x) * s.in_channels + group * channels : -1);
          patch_offset += channels;
        }
      }
    }
  }
}

void gather(const ConvolutionShape& s, Index group, const Scalar* sample, Scalar* patches) {
  const Index channels = s.in_channels / s.groups;
  walk_patches(s, group, [&](Index patch_offset, Index in_offset) {
    if (in_offset < 0) {
      std::fill_n(patches + patch_offset, channels, Scalar{0});
    } else {
      std::copy_n(sample + in_offset, channels, patches + patch_offset);
    }
  });
}

void scatter_add(const ConvolutionShape& s, Index group, const Scalar* patches, Scalar* sample) {
  const Index channels = s.in_channels / s.groups;
  walk_patches(s, group, [&](Index patch_offset, Index in_offset) {
    if (in_offset < 0) return;
    for (Index c = 0; c < channels; ++c) sample[in_offset + c] += patches[patch_offset + c];
  });
}

// Calls visit(plain, arranged) for each weight: its place in [out][in][height][width] and in
// [out][height][width][in], the order of the channels in a patch.
template <class Visit>
void walk_weights(const ConvolutionShape& s, const Visit& visit) {
  const Index channels = s.in_channels / s.groups;
  const Index taps = s.vertical.size * s.horizontal.size;
  for (Index out = 0; out < s.out_channels; ++out) {
    for (Index in = 0; in < channels; ++in) {
      for (Index tap = 0; tap < taps; ++tap) {
        visit((out * channels + in) * taps + tap, (out * taps + tap) * channels + in);
      }
    }
  }
}

const Scalar* arrange(const ConvolutionShape& s, std::span<const Scalar> weights) {
  Scalar* arranged = reserve(scratch().weights, s.weight_count());
  walk_weights(s,
               [&](Index plain, Index place) { arranged[place] = weights[static_cast<std::size_t>(plain)]; });
  return arranged;
}

// Calls work(first sample, number of samples, group) for each block and group.
template <class Work>
void for_each_block(const ConvolutionShape& s, Index rows, const Work& work) {
  const Index block_rows = Geometry(s).block_rows;
  for (Index first = 0; first < rows; first += block_rows) {
    for (Index group = 0; group < s.groups; ++group) work(first, std::min(block_rows, rows - first), group);
  }
}

}  // namespace

void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x, const ConvolutionWeights& w,
                         Matrix& y) {
  const Geometry g(shape);
  const Scalar* weights = arrange(shape, w.weights);
  Scalar* patches = reserve(scratch().patches, g.block_rows * g.positions * g.patch);
  for_each_block(shape, x.rows(), [&](Index first, Index rows, Index group) {
    for (Index row = 0; row < rows; ++row) {
      gather(shape, group, x.data() + (first + row) * x.cols(), patches + row * g.positions * g.patch);
    }
    Columns out(y.data() + first * y.cols() + group * g.group_out, rows * g.positions, g.group_out,
                Eigen::OuterStride<>(shape.out_channels));
    const ConstMatrix group_weights(weights + group * g.group_out * g.patch, g.group_out, g.patch);
    out.noalias() = ConstMatrix(patches, rows * g.positions, g.patch) * group_weights.transpose();
  });
  if (w.bias.empty()) return;
  Matrix pixels(y.data(), y.rows() * g.positions, shape.out_channels);
  add_to_rows(w.bias, pixels);
}

void convolution_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                               std::span<const Scalar> weights, Matrix& dx) {
  const Geometry g(shape);
  const Scalar* arranged = arrange(shape, weights);
  Scalar* patches = reserve(scratch().patches, g.block_rows * g.positions * g.patch);
  dx.setZero();
  for_each_block(shape, dy.rows(), [&](Index first, Index rows, Index group) {
    const ConstColumns out(dy.data() + first * dy.cols() + group * g.group_out, rows * g.positions,
                           g.group_out, Eigen::OuterStride<>(shape.out_channels));
    const ConstMatrix group_weights(arranged + group * g.group_out * g.patch, g.group_out, g.patch);
    Matrix(patches, rows * g.positions, g.patch).noalias() = out * group_weights;
    for (Index row = 0; row < rows; ++row) {
      scatter_add(shape, group, patches + row * g.positions * g.patch, dx.data() + (first + row) * dx.cols());
    }
  });
}

void convolution_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                  const ConvolutionGradient& gradient) {
  const Geometry g(shape);
  Scalar* arranged = reserve(scratch().weights, shape.weight_count());
  std::fill_n(arranged, shape.weight_count(), Scalar{0});
  Scalar* patches = reserve(scratch().patches, g.block_rows * g.positions * g.patch);
  for_each_block(shape, x.rows(), [&](Index first, Index rows, Index group) {
    for (Index row = 0; row < rows; ++row) {
      gather(shape, group, x.data() + (first + row) * x.cols(), patches + row * g.positions * g.patch);
    }
    const ConstColumns out(dy.data() + first * dy.cols() + group * g.group_out, rows * g.positions,
                           g.group_out, Eigen::OuterStride<>(shape.out_channels));
    Matrix(arranged + group * g.group_out * g.patch, g.group_out, g.patch).noalias() +=
        out.transpose() * ConstMatrix(patches, rows * g.positions, g.patch);
  });
  walk_weights(shape, [&](Index plain, Index place) {
    Scalar& sum = gradient.weights[static_cast<std::size_t>(plain)];
    sum = gradient.write == Write::kReplace ? arranged[place] : sum + arranged[place];
  });
  if (gradient.bias.empty()) return;
  sum_rows(ConstMatrix(dy.data(), dy.rows() * g.positions, shape.out_channels), gradient.bias,
           gradient.write);
}

}  // namespace lockstep
