#include "patches.h"

#include <algorithm>
#include <array>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

constexpr Index kCachedScalars = 1 << 17;

}  // namespace

PatchLayout::PatchLayout(const ConvolutionShape& shape)
    : shape_(shape),
      positions_(shape.out_height() * shape.out_width()),
      block_rows_(std::max<Index>(1, kCachedScalars / std::max<Index>(1, positions_ * shape.fan_in()))) {}

// Calls visit(patch_offset, in_offset, length) for each run of scalars of one sample that stand side by side
// both in its patches and in the sample. The padding is in no run.
template <class Visit>
void PatchLayout::walk_patches(Index group, const Visit& visit) const {
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

void PatchLayout::gather(const PatchBlock& block, const ConstMatrix& x, Scalar* patches) const {
  const Index row_size = positions_ * patch();
  std::fill_n(patches, block.rows * row_size, Scalar{0});
  for (Index row = 0; row < block.rows; ++row) {
    const Scalar* sample = x.data() + (block.first_row + row) * x.cols();
    Scalar* sample_patches = patches + row * row_size;
    walk_patches(block.group, [&](Index patch_offset, Index in_offset, Index length) {
      for (Index i = 0; i < length; ++i) sample_patches[patch_offset + i] = sample[in_offset + i];
    });
  }
}

void PatchLayout::scatter_add(const PatchBlock& block, const Scalar* patches, Matrix& dx) const {
  for (Index row = 0; row < block.rows; ++row) {
    Scalar* sample = dx.data() + (block.first_row + row) * dx.cols();
    const Scalar* sample_patches = patches + row * positions_ * patch();
    walk_patches(block.group, [&](Index patch_offset, Index in_offset, Index length) {
      for (Index i = 0; i < length; ++i) sample[in_offset + i] += sample_patches[patch_offset + i];
    });
  }
}

// Calls visit(plain, arranged) for each weight: its offset in either order.
template <class Visit>
void PatchLayout::walk_weights(const Visit& visit) const {
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

void PatchLayout::arrange(std::span<const Scalar> weights, Scalar* arranged) const {
  walk_weights([&](Index plain, Index offset) { arranged[offset] = at(weights, plain); });
}

void PatchLayout::restore(const Scalar* arranged, std::span<Scalar> weights, Write write) const {
  walk_weights([&](Index plain, Index offset) {
    Scalar& weight = at(weights, plain);
    weight = write == Write::kReplace ? arranged[offset] : weight + arranged[offset];
  });
}

Scalar* scratch(ScratchUse use, Index size) {
  thread_local std::array<AlignedBuffer<Scalar>, 4> buffers;
  AlignedBuffer<Scalar>& buffer = buffers[static_cast<std::size_t>(use)];
  if (buffer.size() < size) buffer = AlignedBuffer<Scalar>(size);
  return buffer.data();
}

}  // namespace lockstep
