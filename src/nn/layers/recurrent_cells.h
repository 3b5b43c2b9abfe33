// The cells of recurrent layers: a step of one sample, forward and backward. Both have four sums of so many
// units side by side, of W_ih x and W_hh h, and a bias for each. For each sum a cell says which gate of
// PyTorch's tensors is its part of W_ih, and which of W_hh; kNoGate: none.
#pragma once

#include <array>

#include "lockstep/base/types.h"
#include "lockstep/math/elementary.h"

namespace lockstep {

inline constexpr Index kSums = 4;
inline constexpr Index kNoGate = -1;

struct CellForward {
  Index units;
  const Scalar* sums;
  const Scalar* bias;
  Scalar* carry;  ///< what a cell takes to its next step beside h
  Scalar* h;      ///< the state, which becomes the new one
  Scalar* kept;   ///< for the backward pass
};

struct CellBackward {
  Index units;
  const Scalar* kept;
  const Scalar* h_before;
  const Scalar* dy;  ///< the gradient of the state from outside
  const Scalar* dh;  ///< and through the sums of the next step
  Scalar* carry;     ///< the gradient that the next step gave to this one beside that
  Scalar* d;         ///< the gradient of the sums
};

/// Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000: c = f c + i g, h = o tanh(c).
/// What is carried is c.
struct LstmCell {
  static constexpr const char* kName = "lstm";
  static constexpr const char* kOnnxName = "LSTM";
  static constexpr Index kGates = 4;                             // i f g o
  static constexpr std::array<Index, 4> kOnnxGates{0, 3, 1, 2};  // i o f g
  static constexpr std::array<Index, kSums> kOfInput{0, 1, 2, 3};
  static constexpr std::array<Index, kSums> kOfState{0, 1, 2, 3};
  static constexpr bool kLinearBeforeReset = false;
  static constexpr Index kKept = 5;  // the gates, and c before the step

  static void forward(const CellForward& a) {
    const auto [n, sums, bias, carry, h, kept] = a;
#pragma GCC ivdep
    for (Index j = 0; j < n; ++j) {
      const Scalar i = sigmoid(sums[j] + bias[j]);
      const Scalar f = sigmoid(sums[n + j] + bias[n + j]);
      const Scalar g = hyperbolic_tangent(sums[2 * n + j] + bias[2 * n + j]);
      const Scalar o = sigmoid(sums[3 * n + j] + bias[3 * n + j]);
      kept[j] = i;
      kept[n + j] = f;
      kept[2 * n + j] = g;
      kept[3 * n + j] = o;
      kept[4 * n + j] = carry[j];
      carry[j] = f * carry[j] + i * g;
      h[j] = o * hyperbolic_tangent(carry[j]);
    }
  }

  static void backward(const CellBackward& a) {
    const auto [n, kept, h_before, dy, dh, carry, d] = a;
#pragma GCC ivdep
    for (Index j = 0; j < n; ++j) {
      const Scalar i = kept[j];
      const Scalar f = kept[n + j];
      const Scalar g = kept[2 * n + j];
      const Scalar o = kept[3 * n + j];
      const Scalar c_before = kept[4 * n + j];
      const Scalar tanh_c = hyperbolic_tangent(f * c_before + i * g);
      const Scalar whole = dy[j] + dh[j];
      const Scalar dc = carry[j] + whole * o * (1 - tanh_c * tanh_c);
      d[j] = dc * g * (i * (1 - i));
      d[n + j] = dc * c_before * (f * (1 - f));
      d[2 * n + j] = dc * i * (1 - g * g);
      d[3 * n + j] = whole * tanh_c * (o * (1 - o));
      carry[j] = dc * f;
    }
  }
};

/// Cho et al. 2014, linear before the reset as PyTorch has it: n = tanh(W_in x + b_in + r (W_hn h + b_hn)),
/// h = (1 - z) n + z h. The two products in n are sums of their own.
struct GruCell {
  static constexpr const char* kName = "gru";
  static constexpr const char* kOnnxName = "GRU";
  static constexpr Index kGates = 3;                          // r z n
  static constexpr std::array<Index, 3> kOnnxGates{1, 0, 2};  // z r n
  static constexpr std::array<Index, kSums> kOfInput{0, 1, 2, kNoGate};
  static constexpr std::array<Index, kSums> kOfState{0, 1, kNoGate, 2};
  static constexpr bool kLinearBeforeReset = true;
  static constexpr Index kKept = 4;  // the gates, and what r multiplies

  static void forward(const CellForward& a) {
    const auto [units, sums, bias, carry, h, kept] = a;
#pragma GCC ivdep
    for (Index j = 0; j < units; ++j) {
      const Scalar r = sigmoid(sums[j] + bias[j]);
      const Scalar z = sigmoid(sums[units + j] + bias[units + j]);
      const Scalar inner = sums[3 * units + j] + bias[3 * units + j];
      const Scalar n = hyperbolic_tangent(sums[2 * units + j] + bias[2 * units + j] + r * inner);
      kept[j] = r;
      kept[units + j] = z;
      kept[2 * units + j] = n;
      kept[3 * units + j] = inner;
      h[j] = (1 - z) * n + z * h[j];
    }
  }

  static void backward(const CellBackward& a) {
    const auto [units, kept, h_before, dy, dh, carry, d] = a;
#pragma GCC ivdep
    for (Index j = 0; j < units; ++j) {
      const Scalar r = kept[j];
      const Scalar z = kept[units + j];
      const Scalar n = kept[2 * units + j];
      const Scalar whole = dy[j] + dh[j] + carry[j];
      const Scalar dn = whole * (1 - z) * (1 - n * n);
      d[j] = dn * kept[3 * units + j] * (r * (1 - r));
      d[units + j] = whole * (h_before[j] - n) * (z * (1 - z));
      d[2 * units + j] = dn;
      d[3 * units + j] = dn * r;
      carry[j] = whole * z;
    }
  }
};

}  // namespace lockstep
