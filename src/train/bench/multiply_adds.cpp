// Compiled with -ffp-contract=fast (CMakeLists.txt), as no other file is. So it includes nothing that
// computes with floating point: other files could get that code.
#include "multiply_adds.h"

namespace lockstep {
namespace {

// A vector type of gcc and clang: one register of the widest kind there is, or two of a narrower one.
typedef float Lanes __attribute__((vector_size(64)));

constexpr Index kLanes = sizeof(Lanes) / sizeof(float);

// As many sums side by side as hide the latency of a multiply-add (4 cycles, 2 a cycle) with registers to
// spare.
constexpr Index kSums = 12;
static_assert(kOperationsOfARound == 2 * kSums * kLanes);

// An optimisation barrier, as Google Benchmark's DoNotOptimize: the compiler has to compute the value.
template <class T>
void blur(T& value) {
  asm volatile("" : "+m"(value));
}

}  // namespace

Scalar multiply_and_add(Index rounds, Scalar start, Scalar factor, Scalar term) {
  Lanes factors = Lanes{} + factor;
  Lanes terms = Lanes{} + term;
  blur(factors);
  blur(terms);
  Lanes sums[kSums];
  for (Lanes& sum : sums) sum = Lanes{} + start;
  blur(sums);
  Lanes local[kSums];  // copies that stay in registers
  for (Index i = 0; i < kSums; ++i) local[i] = sums[i];
  for (Index round = 0; round < rounds; ++round) {
    for (Lanes& sum : local) sum = sum * factors + terms;
  }
  for (Index i = 0; i < kSums; ++i) sums[i] = local[i];
  blur(sums);
  return sums[kSums - 1][kLanes - 1];
}

}  // namespace lockstep
