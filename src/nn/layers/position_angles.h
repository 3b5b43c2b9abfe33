// The angles of sinusoidal and of rotary positions (Vaswani et al. 2017, section 3.5): position t has size /
// 2 of them, t / 10000^(2 i / size).
#pragma once

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

inline constexpr double kAngleBase = 10000;

inline double position_angle(Index position, Index i, Index size) {
  return static_cast<double>(position) *
         std::pow(kAngleBase, -2.0 * static_cast<double>(i) / static_cast<double>(size));
}

/// The numbers 0, 1, ... below `count` as floats.
inline std::string onnx_numbers(OnnxNodes& graph, Index count) {
  std::vector<Index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  return graph.add("Cast", {graph.add_list(numbers)}, {{"to", kOnnxFloat}});
}

/// The numbers of the positions that the sequence has, of at most so many, as floats of this shape.
inline std::string onnx_position_numbers(OnnxNodes& graph, const std::string& sequence, Index positions,
                                         const std::vector<Index>& shape) {
  const std::string numbers = onnx_first_rows(graph, onnx_numbers(graph, positions), sequence);
  return graph.reshape(numbers, shape);
}

/// [positions of the sequence, size / 2]
inline std::string onnx_angles(OnnxNodes& graph, const std::string& sequence, Index positions, Index size) {
  const std::string exponents =
      graph.add("Mul", {onnx_numbers(graph, size / 2),
                        graph.add_number(-2 * std::log(kAngleBase) / static_cast<double>(size))});
  return graph.add(
      "Mul", {onnx_position_numbers(graph, sequence, positions, {-1, 1}), graph.add("Exp", {exponents})});
}

}  // namespace lockstep
