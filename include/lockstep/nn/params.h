// The arena of weights and its layout: every tensor is a range of one allocation, on a 64-byte border.
// Gradients and optimizer slots are arenas of the same layout.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// How a tensor starts. He et al. 2015 (normal, deviation sqrt(2 / fan_in)); Xavier: Glorot & Bengio 2010
/// (uniform, +- sqrt(6 / (fan_in + fan_out))); normal with model.init_std; zero; and, not by name, one, and
/// normal with a deviation, or uniform with a bound, of the tensor's own.
enum class Initialiser { kHe, kXavier, kNormal, kZero, kOne, kDeviation, kUniform };

/// Errors: ConfigError naming the known ones.
Initialiser parse_initialiser(std::string_view name);

struct ParamInfo {
  /// "0.weight": number of the layer in the model text, then the tensor, as torch.nn.Sequential; inside a
  /// composite its part and the number there: "3.body.0.weight".
  std::string name;
  Shape shape;
  Range range;             ///< its range in the arena
  bool decays = true;      ///< weight decay applies (weights, not biases)
  bool looked_up = false;  ///< a table of which the model picks rows, not a matrix that it multiplies by
  Index layer = 0;         ///< number of the op that owns it
  Initialiser initialiser = Initialiser::kZero;
  Index fan_in = 0;
  Index fan_out = 0;
  double deviation = 0;  ///< with kDeviation; with kUniform the bound
};

struct Layout {
  std::vector<ParamInfo> params;  ///< tensors in the order of their ranges
  Index size = 0;                 ///< scalars in the arena, gaps for alignment included
  bool has_output = true;  ///< its last matrix is that of the model's output; not so in an earlier stage
  /// The first tensor of each chunk of the model but the first one (Model::chunks()), which may be
  /// params.size().
  std::vector<std::size_t> chunk_begins = {};

  /// Scalars in all tensors, gaps not counted.
  Index count() const;
  /// The offset in the arena at which a tensor begins; its size for params.size().
  Index offset(std::size_t param) const { return param < params.size() ? params[param].range.begin : size; }
  /// The offset in the arena at which each chunk but the first begins.
  std::vector<Index> chunk_offsets() const;
};

/// Borrowed weights with their layout. The memory belongs to a strategy or a test.
struct ParamStore {
  const Layout* layout = nullptr;
  std::span<Scalar> values;
};

/// Errors: ConfigError if there are more than kMaxScalars; appends the tensor behind the others.
Range append(Layout& layout, ParamInfo param);

/// Fills each tensor from a stream keyed by (seed, its name): renaming nothing changes nothing.
void initialise(const ParamStore& store, std::uint64_t seed, double normal_std);

// Gradients of weights as two factors, dy^T x: where few samples make a large one, those are less to write
// and read than their product.

/// A tensor (out x in) of the arena whose gradient is the product of two factors, dy^T x.
struct FactoredTensor {
  Index op = 0;  ///< number of the op in the model
  Range range;
  Index out = 0;
  Index in = 0;
};

/// The buffers in which a layer leaves x and dy instead of their product, for n samples.
struct FactorBuffers {
  Scalar* x = nullptr;     ///< n x in
  Scalar* dy_t = nullptr;  ///< out x n, the transpose of dy: each row starts `stride` behind the one before
  Index stride = 0;

  /// The buffers of the samples from this one on.
  FactorBuffers from_row(Index row, Index in) const {
    return x == nullptr ? FactorBuffers{} : FactorBuffers{x + row * in, dy_t + row, stride};
  }
};

}  // namespace lockstep
