// Parts that layers share: arguments; memory that each thread keeps for the layer at work and that only
// grows, so that a step after the first allocates nothing; the arithmetic on rows; sequences as the input of
// layers that mix positions, which see zeros for padding; and the random numbers of layers that drop numbers
// in training.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/text.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

/// init=WORD, or init=normal(0.02), which names its deviation; where it is not given the layer starts as
/// model.init has it. Errors: ConfigError for an unknown word.
class InitArgument {
 public:
  explicit InitArgument(TermArguments& arguments) {
    const std::string word = arguments.take_word("init", "");
    if (word.starts_with("normal(")) {
      initialiser_ = Initialiser::kDeviation;
      deviation_ = positive_number("init=normal(...)", word.substr(7, word.size() - 8));
    } else if (!word.empty()) {
      initialiser_ = parse_initialiser(word);
    }
  }

  bool given() const { return initialiser_.has_value(); }
  ParamSpec of(const ParamDeclarer& params, ParamSpec spec) const {
    spec.initialiser = initialiser_.value_or(params.default_initialiser());
    spec.deviation = deviation_;
    return spec;
  }

 private:
  static double positive_number(std::string_view key, const std::string& text) {
    const std::optional<double> value = number_in<double>(text);
    if (value && *value > 0 && std::isfinite(*value)) return *value;
    throw ConfigError("'{}' must be a number above 0, found {}", key, in_quotes(text));
  }

  std::optional<Initialiser> initialiser_;
  double deviation_ = 0;
};

/// The number of an argument that may also be a word. Errors: ConfigError if it is below `least` or none;
/// `words` are what else it may be.
inline Index whole_number(std::string_view key, std::string_view text, Index least, std::string_view words) {
  const std::optional<Index> value = number_in<Index>(text);
  if (value && *value >= least) return *value;
  throw ConfigError("'{}' must be {}a whole number of at least {}, found {}", key,
                    words.empty() ? "" : fmt::format("{} or ", words), least, in_quotes(text));
}

/// Whether split=rows is there, of a layer whose weight can lie in fixed blocks (split_layer.h). Errors:
/// ConfigError for another word than rows.
inline bool takes_split(TermArguments& arguments) {
  const std::string split = arguments.take_word("split", "");
  if (split.empty() || split == "rows") return !split.empty();
  throw ConfigError("'split' must be rows, found {}", in_quotes(split));
}

/// At least so many scalars, with any content, until the thread's next call.
inline Scalar* layer_scratch(Index size) {
  thread_local AlignedBuffer<Scalar> scratch;
  if (scratch.size() < size) scratch = AlignedBuffer<Scalar>(size);
  return scratch.data();
}

/// Rounded into `buffer`, an operand of a layer in bf16 beside its weights.
inline Bf16Matrix rounded_into(const ConstMatrix& m, AlignedBuffer<Bf16>& buffer) {
  if (buffer.size() < m.size()) buffer = AlignedBuffer<Bf16>(m.size());
  const std::span<Bf16> used = part(buffer.span(), {0, m.size()});
  round_to_bf16(m.values(), used);
  return {used.data(), m.rows(), m.cols()};
}

/// The input of the layer; valid until the thread's next call.
inline Bf16Matrix rounded_input(const ConstMatrix& x) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded_into(x, buffer);
}

/// The gradient of its output; likewise.
inline Bf16Matrix rounded_output_gradient(const ConstMatrix& dy) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded_into(dy, buffer);
}

/// The sum of term(i) for 0 <= i < count, in fixed lanes side by side: a single sum would wait for each
/// addition.
template <class Term>
double sum_of(Index count, const Term& term) {
  constexpr Index kLanes = 8;
  std::array<double, kLanes> lanes{};
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane) at(lanes, lane) += term(i + lane);
  }
  for (Index lane = 0; i < count; ++i, ++lane) at(lanes, lane) += term(i);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

/// Each sample of `from`, rows x columns in memory, becomes columns x rows in `to`.
inline void transpose_samples(const ConstMatrix& from, Index rows, Index columns, Matrix& to) {
  for (Index begin = 0; begin < from.size(); begin += from.cols())
    transpose(ConstMatrix(from.data() + begin, rows, columns), to.data() + begin, rows);
}

/// A factor for each feature: to[row][i] = from[row][i] * scale[i]
inline void scale_rows(const Scalar* from, const Scalar* scale, Index rows, Index size, Scalar* to) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) to[row * size + i] = from[row * size + i] * scale[i];
  }
}

/// sums[i] += a[row][i] * b[row][i], over the rows in order.
inline void add_products(const Scalar* a, const Scalar* b, Index rows, Index size, Scalar* sums) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) sums[i] += a[row * size + i] * b[row * size + i];
  }
}

/// Errors: ConfigError if `in` is no sequence.
inline SequenceShape expect_sequence(const Shape& in) {
  const std::optional<SequenceShape> sequence = as_sequence(in);
  if (sequence) return *sequence;
  throw ConfigError(
      "expected a sequence, positions x channels: put as_sequence(positions) before it, or set data.record = "
      "\"sequence\"");
}

/// Writes zeros where `samples`, with so many channels a position, have padding.
inline void clear_padding(const Lengths& lengths, Index channels, Matrix& samples) {
  if (!lengths.given()) return;
  for (Index row = 0; row < samples.rows(); ++row) {
    Scalar* sample = samples.data() + row * samples.cols();
    std::fill(sample + lengths[row] * channels, sample + samples.cols(), Scalar{0});
  }
}

/// Room for so many rows in `buffer`, with any content.
inline Matrix matrix_in(AlignedBuffer<Scalar>& buffer, Index rows, Index columns) {
  if (buffer.size() < rows * columns) buffer = AlignedBuffer<Scalar>(rows * columns);
  return {buffer.data(), rows, columns};
}

/// The first numbers of each row of `from`, or of `to` where these are fewer, as the first ones of `to`.
inline void copy_first(const ConstMatrix& from, Matrix& to) {
  const Index size = std::min(from.cols(), to.cols());
  for (Index row = 0; row < to.rows(); ++row)
    std::copy_n(from.data() + row * from.cols(), size, to.data() + row * to.cols());
}

/// The probability of an argument. Errors: ConfigError if it is below 0, or not below 1.
inline double take_dropout_rate(TermArguments& arguments, std::string_view key, double otherwise) {
  const double rate = arguments.take_number(key, otherwise);
  if (rate >= 0 && rate < 1) return rate;
  throw ConfigError("{} must be at least 0 and below 1, found {}", key, rate);
}

/// The stream that decides what of a sample is dropped: each sample of each replica's step has one of its
/// own, wherever and in whatever parts it is computed. `layer`: ParamDeclarer::number().
inline StreamKey dropout_stream(const BatchContext& batch, Index row, Index layer) {
  return {.seed = batch.seed,
          .purpose = Purpose::kDropout,
          .a = static_cast<std::uint64_t>(batch.step << 16 | layer),
          .b = static_cast<std::uint64_t>(batch.replica << 32 | (batch.first_row + row))};
}

}  // namespace lockstep
