// Speed of the kernels in GFLOP/s on the calling thread's own clock, so other work on the machine counts
// little: kernels_bench. Compare back ends by building one of each.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/convolution.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/pooling.h"

namespace lockstep {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best of many calls, after one that fills the caches.
double best_seconds(const std::function<void()>& call) {
  constexpr double kBudget = 0.3;
  constexpr int kFewestCalls = 5;
  call();
  double best = 1e9;
  double total = 0;
  for (int calls = 0; calls < kFewestCalls || total < kBudget; ++calls) {
    const double start = thread_seconds();
    call();
    const double seconds = thread_seconds() - start;
    total += seconds;
    best = std::min(best, seconds);
  }
  return best;
}

AlignedBuffer<Scalar> random_values(Index size) {
  static std::mt19937 rng(1);
  std::uniform_real_distribution<Scalar> uniform(-1, 1);
  AlignedBuffer<Scalar> values(size);
  for (Scalar& value : values.span()) value = uniform(rng);
  return values;
}

void report(const std::string& name, Index flops, const std::vector<std::function<void()>>& calls) {
  fmt::print("{:<34}", name);
  for (const auto& call : calls) {
    fmt::print(" {:>10.1f}", static_cast<double>(flops) / best_seconds(call) * 1e-9);
    std::fflush(stdout);
  }
  fmt::print("\n");
}

void bench_product(Index rows, Index out, Index in) {
  AlignedBuffer<Scalar> x_memory = random_values(rows * in);
  AlignedBuffer<Scalar> w_memory = random_values(out * in);
  AlignedBuffer<Scalar> y_memory = random_values(rows * out);
  const AlignedBuffer<Scalar> bias = random_values(out);
  Matrix x = as_matrix(x_memory.span(), rows, in);
  Matrix w = as_matrix(w_memory.span(), out, in);
  Matrix y = as_matrix(y_memory.span(), rows, out);
  const ConstMatrix const_x(x.data(), rows, in);
  const ConstMatrix const_w(w.data(), out, in);
  const ConstMatrix const_y(y.data(), rows, out);
  report(fmt::format("product {}x{}x{}", rows, out, in), 2 * rows * out * in,
         {[&] { multiply_forward(const_x, const_w, bias.span(), y); },
          [&] { multiply_backward_data(const_y, const_w, x); },
          [&] {
            multiply_backward_weights(const_y, const_x, {0, w.rows()}, w, Write::kReplace);
          },
          [&] {
            multiply_backward_weights(const_y, const_x, {0, w.rows()}, w, Write::kAdd);
          }});
}

void bench_convolution(Index rows, const ConvolutionShape& shape) {
  AlignedBuffer<Scalar> x_memory = random_values(rows * shape.in_size());
  AlignedBuffer<Scalar> y_memory = random_values(rows * shape.out_size());
  AlignedBuffer<Scalar> w = random_values(shape.weight_count());
  AlignedBuffer<Scalar> b = random_values(shape.out_channels);
  Matrix x = as_matrix(x_memory.span(), rows, shape.in_size());
  Matrix y = as_matrix(y_memory.span(), rows, shape.out_size());
  const ConstMatrix const_x(x.data(), rows, x.cols());
  const ConstMatrix const_y(y.data(), rows, y.cols());
  const auto backward_weights = [&](Write write) {
    convolution_backward_weights(shape, const_x, const_y,
                                 {.weights = w.span(), .bias = b.span(), .write = write});
  };
  report(fmt::format("convolution {} {}>{} {}x{} k{} s{} g{} d{}", rows, shape.in_channels,
                     shape.out_channels, shape.in_height, shape.in_width, shape.vertical.size,
                     shape.vertical.stride, shape.groups, shape.vertical.dilation),
         rows * shape.flops(),
         {[&] { convolution_forward(shape, const_x, {.values = w.span()}, b.span(), y); },
          [&] { convolution_backward_data(shape, const_y, {.values = w.span()}, x); },
          [&] { backward_weights(Write::kReplace); }, [&] { backward_weights(Write::kAdd); }});
}

void bench_pooling(Index rows, const PoolingShape& shape) {
  AlignedBuffer<Scalar> x_memory = random_values(rows * shape.in_size());
  AlignedBuffer<Scalar> y_memory = random_values(rows * shape.out_size());
  AlignedBuffer<std::int32_t> winners(rows * shape.out_size());
  Matrix x = as_matrix(x_memory.span(), rows, shape.in_size());
  Matrix y = as_matrix(y_memory.span(), rows, shape.out_size());
  const ConstMatrix const_x(x.data(), rows, x.cols());
  const ConstMatrix const_y(y.data(), rows, y.cols());
  const Index bytes = (x.size() + y.size()) * Index{sizeof(Scalar)};
  const std::string size = fmt::format("{} {}x{}x{} k{} s{}, GB/s", rows, shape.in_height, shape.in_width,
                                       shape.channels, shape.vertical.size, shape.vertical.stride);
  report("max pool " + size, bytes,
         {[&] { max_pool_forward(shape, const_x, y, winners.span()); },
          [&] { max_pool_backward(shape, const_y, winners.span(), x); }});
  report(
      "average " + size, bytes,
      {[&] { average_pool_forward(shape, const_x, y); }, [&] { average_pool_backward(shape, const_y, x); }});
}

ConvolutionShape square(Index side, Index in, Index out, const Window& window, Index groups = 1) {
  return {.in_height = side,
          .in_width = side,
          .in_channels = in,
          .out_channels = out,
          .vertical = window,
          .horizontal = window,
          .groups = groups};
}

void bench_all() {
  fmt::print("{}\n{:<34} {:>10} {:>10} {:>10} {:>10}   GFLOP/s\n", kernel_back_end(), "", "forward", "data",
             "weights", "weights +=");
  bench_product(64, 256, 784);
  bench_product(64, 10, 128);
  bench_product(64, 2048, 2048);
  bench_product(512, 2048, 2048);
  const Window three{.size = 3, .pad_before = 1, .pad_after = 1};
  const Window three_by_two{.size = 3, .stride = 2, .pad_before = 1, .pad_after = 1};
  bench_convolution(64, square(28, 1, 32, three));
  bench_convolution(64, square(14, 32, 64, three));
  bench_convolution(64, square(32, 3, 16, three));
  bench_convolution(64, square(32, 16, 16, three));
  bench_convolution(64, square(32, 16, 32, three_by_two));
  bench_convolution(64, square(8, 64, 64, three));
  bench_convolution(64, square(32, 16, 32, {.size = 1, .stride = 2}));
  bench_convolution(64, square(14, 64, 64, three, 4));
  bench_convolution(64, square(14, 64, 64, three, 64));
  const Window two{.size = 2, .stride = 2};
  bench_pooling(64, {.in_height = 28, .in_width = 28, .channels = 32, .vertical = two, .horizontal = two});
  bench_pooling(64, {.in_height = 32,
                     .in_width = 32,
                     .channels = 16,
                     .vertical = three_by_two,
                     .horizontal = three_by_two});
  const Window whole{.size = 8};
  bench_pooling(64, {.in_height = 8, .in_width = 8, .channels = 64, .vertical = whole, .horizontal = whole});
}

}  // namespace
}  // namespace lockstep

int main() {
  lockstep::fix_kernel_settings();
  lockstep::bench_all();
}
