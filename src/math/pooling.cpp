#include "lockstep/math/pooling.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "taps.h"

namespace lockstep {
namespace {

// Values and offsets in the sample of neighbouring channels that are taken together, as vectors that gcc and
// clang know: what a window comes to stays in registers until all is under it. Where a vector is wider than a
// register, it takes several.
typedef Scalar Values16 __attribute__((vector_size(16 * sizeof(Scalar))));
typedef Scalar Values4 __attribute__((vector_size(4 * sizeof(Scalar))));
typedef std::int32_t Places16 __attribute__((vector_size(16 * sizeof(std::int32_t))));
typedef std::int32_t Places4 __attribute__((vector_size(4 * sizeof(std::int32_t))));

// How many channels, and the types for them.
template <Index kCount, class V, class P>
struct Channels {};

// (Returned, a vector would have another calling convention on each processor.)
template <class Block, class Number>
void load(Block& block, const Number* from) {
  std::memcpy(&block, from, sizeof(Block));
}

template <class Block, class Number>
void store(const Block& block, Number* to) {
  std::memcpy(to, &block, sizeof(Block));
}

// Fills `offsets` with the distance of each channel from the first.
template <class P>
void count(P& offsets) {
  std::int32_t numbers[sizeof(P) / sizeof(std::int32_t)];
  std::iota(std::begin(numbers), std::end(numbers), 0);
  load(offsets, numbers);
}

// Calls visit(Channels, window, first channel) for each position of the window and all its channels.
template <class Visit>
void for_each_window(const PoolingShape& s, const Visit& visit) {
  const auto take = [&]<Index kCount, class V, class P>(Channels<kCount, V, P> channels,
                                                        const TapWindow& window, Index first) {
    for (; first + kCount <= s.channels; first += kCount) visit(channels, window, first);
    return first;
  };
  walk_windows(
      {.height = s.in_height, .width = s.in_width, .vertical = s.vertical, .horizontal = s.horizontal},
      [&](const TapWindow& window) {
        Index first = take(Channels<16, Values16, Places16>(), window, 0);
        first = take(Channels<4, Values4, Places4>(), window, first);
        take(Channels<1, Scalar, std::int32_t>(), window, first);
      });
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
  std::ranges::fill(dx.values(), Scalar{0});
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
    const Scalar* in = x.data() + row * x.cols();
    Scalar* out = y.data() + row * y.cols();
    std::int32_t* winner_of = winners.data() + row * y.cols();
    for_each_window(shape, [&]<Index kCount, class V, class P>(Channels<kCount, V, P>,
                                                               const TapWindow& window, Index first) {
      const Index first_offset = window.first * shape.channels + first;
      V value;
      V best;
      load(best, in + first_offset);
      P winner = P{} + static_cast<std::int32_t>(first_offset);
      for_each_pixel(window, [&](Index pixel) {
        const Index offset = pixel * shape.channels + first;
        load(value, in + offset);
        const auto wins = (value > best) | (value != value);
        best = wins ? value : best;
        winner = wins ? P{} + static_cast<std::int32_t>(offset) : winner;
      });
      store(best, out + window.out * shape.channels + first);
      P numbers;
      count(numbers);
      winner += numbers;
      store(winner, winner_of + window.out * shape.channels + first);
    });
  }
}

void max_pool_backward(const PoolingShape& shape, const ConstMatrix& dy,
                       std::span<const std::int32_t> winners, Matrix& dx) {
  if (!tiles(shape)) {
    add_to_winners(shape, dy, winners, dx);
    return;
  }
  for (Index row = 0; row < dy.rows(); ++row) {
    const Scalar* out = dy.data() + row * dy.cols();
    const std::int32_t* winner_of = winners.data() + row * dy.cols();
    Scalar* in = dx.data() + row * dx.cols();
    for_each_window(shape, [&]<Index kCount, class V, class P>(Channels<kCount, V, P>,
                                                               const TapWindow& window, Index first) {
      V gradient;
      P winner;
      P numbers;
      load(gradient, out + window.out * shape.channels + first);
      load(winner, winner_of + window.out * shape.channels + first);
      count(numbers);
      winner -= numbers;
      for_each_pixel(window, [&](Index pixel) {
        const Index offset = pixel * shape.channels + first;
        store(winner == P{} + static_cast<std::int32_t>(offset) ? gradient : V{}, in + offset);
      });
    });
  }
}

void average_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y) {
  for (Index row = 0; row < x.rows(); ++row) {
    const Scalar* in = x.data() + row * x.cols();
    Scalar* out = y.data() + row * y.cols();
    for_each_window(shape, [&]<Index kCount, class V, class P>(Channels<kCount, V, P>,
                                                               const TapWindow& window, Index first) {
      V sum{};
      V value;
      for_each_pixel(window, [&](Index pixel) {
        load(value, in + pixel * shape.channels + first);
        sum += value;
      });
      store(sum / static_cast<Scalar>(window.count()), out + window.out * shape.channels + first);
    });
  }
}

void average_pool_backward(const PoolingShape& shape, const ConstMatrix& dy, Matrix& dx) {
  std::ranges::fill(dx.values(), Scalar{0});
  for (Index row = 0; row < dy.rows(); ++row) {
    const Scalar* out = dy.data() + row * dy.cols();
    Scalar* in = dx.data() + row * dx.cols();
    for_each_window(shape, [&]<Index kCount, class V, class P>(Channels<kCount, V, P>,
                                                               const TapWindow& window, Index first) {
      V sum;
      V share;
      load(share, out + window.out * shape.channels + first);
      share /= static_cast<Scalar>(window.count());
      for_each_pixel(window, [&](Index pixel) {
        Scalar* target = in + pixel * shape.channels + first;
        load(sum, target);
        sum += share;
        store(sum, target);
      });
    });
  }
}

}  // namespace lockstep
