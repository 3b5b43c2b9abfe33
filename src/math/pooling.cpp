#include "lockstep/math/pooling.h"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

// One pixel under one position of the window, of one sample.
struct Tap {
  Index out;    // where the channels of the output stand in its sample
  Index in;     // where the channels of the pixel stand in its sample
  Index order;  // which pixel of this window it is, first 0
  Index count;  // how many pixels this window has
};

// Calls visit(tap) for all positions of the window and the pixels under each, row by row.
template <class Visit>
void walk_taps(const PoolingShape& s, const Visit& visit) {
  Tap tap{.out = 0, .in = 0, .order = 0, .count = 0};
  for (Index out_y = 0; out_y < s.out_height(); ++out_y) {
    const Range rows = s.vertical.taps_inside(out_y, s.in_height);
    for (Index out_x = 0; out_x < s.out_width(); ++out_x) {
      const Range columns = s.horizontal.taps_inside(out_x, s.in_width);
      tap.order = 0;
      tap.count = rows.size() * columns.size();
      for (Index row = rows.begin; row < rows.end; ++row) {
        for (Index column = columns.begin; column < columns.end; ++column) {
          tap.in =
              (s.vertical.place(out_y, row) * s.in_width + s.horizontal.place(out_x, column)) * s.channels;
          visit(tap);
          ++tap.order;
        }
      }
      tap.out += s.channels;
    }
  }
}

}  // namespace

void max_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y,
                      std::span<std::int32_t> winners) {
  for (Index row = 0; row < x.rows(); ++row) {
    walk_taps(shape, [&](const Tap& tap) {
      const Scalar* in = x.data() + row * x.cols() + tap.in;
      Scalar* best = y.data() + row * y.cols() + tap.out;
      std::int32_t* winner = winners.data() + row * y.cols() + tap.out;
      const auto place = static_cast<std::int32_t>(tap.in);
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
  dx.setZero();
  for (Index row = 0; row < dy.rows(); ++row) {
    const Scalar* out = dy.data() + row * dy.cols();
    const std::int32_t* winner = winners.data() + row * dy.cols();
    Scalar* in = dx.data() + row * dx.cols();
    for (Index i = 0; i < shape.out_size(); ++i) in[winner[i]] += out[i];
  }
}

void average_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y) {
  y.setZero();
  for (Index row = 0; row < x.rows(); ++row) {
    walk_taps(shape, [&](const Tap& tap) {
      const Scalar* in = x.data() + row * x.cols() + tap.in;
      Scalar* mean = y.data() + row * y.cols() + tap.out;
      for (Index c = 0; c < shape.channels; ++c) mean[c] += in[c];
      if (tap.order + 1 < tap.count) return;
      for (Index c = 0; c < shape.channels; ++c) mean[c] /= static_cast<Scalar>(tap.count);
    });
  }
}

void average_pool_backward(const PoolingShape& shape, const ConstMatrix& dy, Matrix& dx) {
  dx.setZero();
  for (Index row = 0; row < dy.rows(); ++row) {
    walk_taps(shape, [&](const Tap& tap) {
      const Scalar* out = dy.data() + row * dy.cols() + tap.out;
      Scalar* in = dx.data() + row * dx.cols() + tap.in;
      for (Index c = 0; c < shape.channels; ++c) in[c] += out[c] / static_cast<Scalar>(tap.count);
    });
  }
}

}  // namespace lockstep
