#include "lockstep/math/pooling.h"

#include <cstring>

#include "lockstep/math/taps.h"

namespace lockstep {
namespace {

// Values of neighbouring channels and places in the sample, of gcc and clang: one register of the widest kind
// there is, or two of a narrower one. So what a window comes to stays in registers until all is under it.
typedef Scalar Values __attribute__((vector_size(64)));
typedef std::int32_t Places __attribute__((vector_size(64)));
constexpr Index kLanes = sizeof(Values) / sizeof(Scalar);

// How many channels are taken together: a vector of them, or one.
template <class V, class P>
struct Channels {};
using Vector = Channels<Values, Places>;
using Single = Channels<Scalar, std::int32_t>;

// What each channel's place is beyond that of the first.
constexpr Places beyond_first(Vector) {
  return Places{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
constexpr std::int32_t beyond_first(Single) {
  return 0;
}

template <class Block, class Number>
Block load(const Number* from) {
  Block block;
  std::memcpy(&block, from, sizeof(Block));
  return block;
}

template <class Block, class Number>
void store(const Block& block, Number* to) {
  std::memcpy(to, &block, sizeof(Block));
}

// Calls visit(channels, window, first channel) for each position of the window and all its channels.
template <class Visit>
void for_each_window(const PoolingShape& s, const Visit& visit) {
  walk_windows(
      {.height = s.in_height, .width = s.in_width, .vertical = s.vertical, .horizontal = s.horizontal},
      [&](const WindowPlace& window) {
        Index first = 0;
        for (; first + kLanes <= s.channels; first += kLanes) visit(Vector(), window, first);
        for (; first < s.channels; ++first) visit(Single(), window, first);
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
    const Scalar* in = x.data() + row * x.cols();
    Scalar* out = y.data() + row * y.cols();
    std::int32_t* winner_of = winners.data() + row * y.cols();
    for_each_window(shape,
                    [&]<class V, class P>(Channels<V, P> channels, const WindowPlace& window, Index first) {
                      const Index first_place = window.first * shape.channels + first;
                      V best = load<V>(in + first_place);
                      P winner = P{} + static_cast<std::int32_t>(first_place);
                      for_each_pixel(window, [&](Index pixel) {
                        const Index place = pixel * shape.channels + first;
                        const V value = load<V>(in + place);
                        const auto wins = (value > best) | (value != value);
                        best = wins ? value : best;
                        winner = wins ? P{} + static_cast<std::int32_t>(place) : winner;
                      });
                      store(best, out + window.out * shape.channels + first);
                      store(winner + beyond_first(channels), winner_of + window.out * shape.channels + first);
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
    for_each_window(
        shape, [&]<class V, class P>(Channels<V, P> channels, const WindowPlace& window, Index first) {
          const V gradient = load<V>(out + window.out * shape.channels + first);
          const P winner = load<P>(winner_of + window.out * shape.channels + first) - beyond_first(channels);
          for_each_pixel(window, [&](Index pixel) {
            const Index place = pixel * shape.channels + first;
            store(winner == P{} + static_cast<std::int32_t>(place) ? gradient : V{}, in + place);
          });
        });
  }
}

void average_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y) {
  for (Index row = 0; row < x.rows(); ++row) {
    const Scalar* in = x.data() + row * x.cols();
    Scalar* out = y.data() + row * y.cols();
    for_each_window(shape, [&]<class V, class P>(Channels<V, P>, const WindowPlace& window, Index first) {
      V sum{};
      for_each_pixel(window, [&](Index pixel) { sum += load<V>(in + pixel * shape.channels + first); });
      store(sum / static_cast<Scalar>(window.count()), out + window.out * shape.channels + first);
    });
  }
}

void average_pool_backward(const PoolingShape& shape, const ConstMatrix& dy, Matrix& dx) {
  dx.setZero();
  for (Index row = 0; row < dy.rows(); ++row) {
    const Scalar* out = dy.data() + row * dy.cols();
    Scalar* in = dx.data() + row * dx.cols();
    for_each_window(shape, [&]<class V, class P>(Channels<V, P>, const WindowPlace& window, Index first) {
      const V share =
          load<V>(out + window.out * shape.channels + first) / static_cast<Scalar>(window.count());
      for_each_pixel(window, [&](Index pixel) {
        Scalar* place = in + pixel * shape.channels + first;
        store(load<V>(place) + share, place);
      });
    });
  }
}

}  // namespace lockstep
