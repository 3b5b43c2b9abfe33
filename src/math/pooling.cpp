#include "lockstep/math/pooling.h"

#include <algorithm>
#include <numeric>

#include "lockstep/math/taps.h"

namespace lockstep {
namespace {

WindowWalk walk_of(const PoolingShape& s) {
  return {.height = s.in_height, .width = s.in_width, .vertical = s.vertical, .horizontal = s.horizontal};
}

// Whether each pixel is under one position of the window.
bool tiles(const PoolingShape& s) {
  const auto fits = [](const Window& window, Index size) {
    return window.stride == window.size && window.dilation == 1 && window.pad_before == 0 &&
           window.positions(size) * window.size == size;
  };
  return fits(s.vertical, s.in_height) && fits(s.horizontal, s.in_width);
}

void add_to_winners(const PoolingShape& shape, const ConstMatrix& dy, std::span<const std::int32_t> winners,
                    Matrix& dx) {
  dx.setZero();
  for (Index row = 0; row < dy.rows(); ++row) {
    const Scalar* out = dy.data() + row * dy.cols();
    const std::int32_t* winner = winners.data() + row * dy.cols();
    Scalar* in = dx.data() + row * dx.cols();
    for (Index i = 0; i < shape.out_size(); ++i) in[winner[i]] += out[i];
  }
}

}  // namespace

void max_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y,
                      std::span<std::int32_t> winners) {
  for (Index row = 0; row < x.rows(); ++row) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* in = x.data() + row * x.cols() + tap.in * shape.channels;
      Scalar* best = y.data() + row * y.cols() + tap.out * shape.channels;
      std::int32_t* winner = winners.data() + row * y.cols() + tap.out * shape.channels;
      const auto place = static_cast<std::int32_t>(tap.in * shape.channels);
      const auto channels = static_cast<std::int32_t>(shape.channels);
      if (tap.order == 0) {
        std::copy_n(in, channels, best);
        std::iota(winner, winner + channels, place);
        return;
      }
      for (std::int32_t c = 0; c < channels; ++c) {
        const bool wins = (in[c] > best[c]) | (in[c] != in[c]);
        best[c] = wins ? in[c] : best[c];
        winner[c] = wins ? place + c : winner[c];
      }
    });
  }
}

void max_pool_backward(const PoolingShape& shape, const ConstMatrix& dy,
                       std::span<const std::int32_t> winners, Matrix& dx) {
  if (!tiles(shape)) {
    add_to_winners(shape, dy, winners, dx);
    return;
  }
  const auto channels = static_cast<std::int32_t>(shape.channels);
  for (Index row = 0; row < dy.rows(); ++row) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* out = dy.data() + row * dy.cols() + tap.out * channels;
      const std::int32_t* winner = winners.data() + row * dy.cols() + tap.out * channels;
      Scalar* in = dx.data() + row * dx.cols() + tap.in * channels;
      const auto place = static_cast<std::int32_t>(tap.in * channels);
#pragma GCC ivdep
      for (std::int32_t c = 0; c < channels; ++c) in[c] = winner[c] == place + c ? out[c] : 0;
    });
  }
}

void average_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y) {
  y.setZero();
  for (Index row = 0; row < x.rows(); ++row) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* in = x.data() + row * x.cols() + tap.in * shape.channels;
      Scalar* mean = y.data() + row * y.cols() + tap.out * shape.channels;
      for (Index c = 0; c < shape.channels; ++c) mean[c] += in[c];
      if (tap.order + 1 < tap.count) return;
      for (Index c = 0; c < shape.channels; ++c) mean[c] /= static_cast<Scalar>(tap.count);
    });
  }
}

void average_pool_backward(const PoolingShape& shape, const ConstMatrix& dy, Matrix& dx) {
  dx.setZero();
  for (Index row = 0; row < dy.rows(); ++row) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* out = dy.data() + row * dy.cols() + tap.out * shape.channels;
      Scalar* in = dx.data() + row * dx.cols() + tap.in * shape.channels;
      for (Index c = 0; c < shape.channels; ++c) in[c] += out[c] / static_cast<Scalar>(tap.count);
    });
  }
}

}  // namespace lockstep
