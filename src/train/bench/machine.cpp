#include <array>
#include <cstring>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/train/bench/bench.h"
#include "timing.h"

namespace lockstep {
namespace {

// A vector type of gcc and clang: one register of the widest kind there is, or two of a narrower one.
typedef float Lanes __attribute__((vector_size(64)));

// As many sums side by side as hide the latency of a multiply-add (4 cycles, 2 a cycle) with registers to
// spare.
constexpr int kSums = 12;

// Keeps the compiler from knowing a value, and so from leaving out what made it.
template <class T>
void blur(T& value) {
  asm volatile("" : "+m"(value));
}

using Sums = std::array<Lanes, kSums>;

double seconds_of_multiply_adds(Communicator& comm, Index rounds) {
  Sums sums{};
  Lanes factor = Lanes{} + 0.5F;
  Lanes term = Lanes{} + 1.0F;
  blur(factor);
  blur(term);
  return median_seconds(comm, [&] {
    Sums local = sums;  // copies that stay in registers
    for (Index round = 0; round < rounds; ++round) {
      for (Lanes& sum : local) sum = sum * factor + term;
    }
    sums = local;
    blur(sums);
  });
}

double copy_bandwidth(Communicator& comm, Index bytes) {
  AlignedBuffer<std::byte> from(bytes);
  AlignedBuffer<std::byte> to(bytes);
  const Index copies = std::max<Index>(1, (Index{16} << 20) / bytes);
  const double seconds = median_seconds(comm, [&] {
    for (Index i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes));
      asm volatile("" : : "r"(to.data()) : "memory");
    }
  });
  return static_cast<double>(2 * copies * bytes) / seconds;
}

}  // namespace

MachineLimits measure_machine(Communicator& comm) {
  constexpr Index kRounds = 100'000;
  constexpr double kFlops = 2.0 * kRounds * kSums * sizeof(Lanes) / sizeof(float);
  return {.flops = kFlops / seconds_of_multiply_adds(comm, kRounds),
          .cache_bandwidth = copy_bandwidth(comm, Index{256} << 10),
          .memory_bandwidth = copy_bandwidth(comm, Index{256} << 20)};
}

}  // namespace lockstep
