// lstm and gru: at each position a cell (recurrent_cells.h) makes a state of the input there and of the state
// before. Words: a *level* is one of the layers that stand on each other; a *direction* of it goes from the
// first position to the last, or in reverse; at *step* k it is at position k of a sample, in reverse at the
// k-th before the last that counts. A sample without more positions keeps its state.
//
// A step multiplies the rows [x h] of all samples by [W_ih W_hh], so that what it writes is read from the
// cache. (The input part of all positions as one product takes longer.) Backward a step multiplies the
// gradient of its sums by W_hh; the products for the weights and the input take several steps together. In
// bf16 the operands of all these products are rounded, and nothing else is.

#include <algorithm>
#include <cmath>
#include <functional>

#include "layer_parts.h"
#include "recurrent_cells.h"

namespace lockstep {
namespace {

// Rows that the products for weights and input take together, about: they stay in the cache.
constexpr Index kRowsAtOnce = 256;

// A thread's memory, with any content.
struct StepMemory {
  AlignedBuffer<Scalar> rows, sums, carry, bias, weights, turned;  // forward, and the first four
  AlignedBuffer<Scalar> dh, zeros, db, dw, dw_turned, input_weights, dx, even, odd;  // backward
};
StepMemory& step_memory() {
  thread_local StepMemory own;
  return own;
}

Matrix zeros_in(AlignedBuffer<Scalar>& buffer, Index rows, Index columns) {
  Matrix zeros = matrix_in(buffer, rows, columns);
  std::ranges::fill(zeros.values(), Scalar{0});
  return zeros;
}

// A vector for each sample and position, with the strides from one to the next.
template <class T>
struct VectorsByPosition {
  T* data;
  Index sample_stride;
  Index position_stride;

  T* of(Index row, Index position) const { return data + row * sample_stride + position * position_stride; }
};

struct Direction {
  Index level;
  bool reverse;
  Index inputs;
  Index below;                     // where the cache of a sample has the states of the level below,
  Index states;                    // its own states, unless they are the output,
  Index kept;                      // and what its cells keep
  std::array<Range, 4> tensors{};  // W_ih, W_hh, b_ih, b_hh; the biases are empty without

  Index position(Index step, Index length) const { return reverse ? length - 1 - step : step; }
};

// Rows [x h] of some steps, those of all samples step by step, and the gradients of their sums.
struct StepRows {
  Matrix rows, gradients;
};

// Passed from some steps to those before them, and the W_ih that they multiply by.
struct StepGradients {
  Matrix dh, carry;
  Matrix dw, db;  // of [W_ih W_hh], turned, and of a bias for each sum
  ConstMatrix input_weights;
};

template <class Cell>
class Recurrent final : public Layer {
 public:
  explicit Recurrent(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)),
        levels_(arguments.take_index("layers", 1, 1)),
        directions_per_level_(arguments.take_flag("bidirectional", false) ? 2 : 1),
        last_(arguments.take_flag("last", false)),
        has_bias_(arguments.take_flag("bias", true)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const SequenceShape in = expect_sequence(inputs.front());
    positions_ = in.positions;
    precision_ = params.precision();
    Index weights = 0;
    for (Index level = 0, below = 0; level < levels_; ++level) {
      const Index states = cache_size_;
      if (!is_output(level)) cache_size_ += positions_ * width();
      for (Index i = 0; i < directions_per_level_; ++i) {
        directions_.push_back({.level = level,
                               .reverse = i == 1,
                               .inputs = level == 0 ? in.channels : width(),
                               .below = below,
                               .states = states + i * units_,
                               .kept = cache_size_});
        declare(directions_.back(), params);
        weights += directions_.back().tensors[0].size() + directions_.back().tensors[1].size();
        cache_size_ += positions_ * Cell::kKept * units_;
      }
      below = states;
    }
    // The gradient of the states before is always wanted.
    return {
        .out = last_ ? Shape{{width()}} : SequenceShape{.positions = positions_, .channels = width()}.shape(),
        .reads_output = !last_,
        .cache_size = cache_size_,
        .flops = 2 * positions_ * weights,
        .flops_of_dx = 2 * positions_ * directions_per_level_ * directions_.front().tensors[0].size(),
        .is_causal = !last_ && directions_per_level_ == 1};
  }

  void forward(const ForwardArgs& args) const override {
    for (const Direction& own : directions_) forward_direction(args, own);
  }

  void backward(const BackwardArgs& args) const override {
    const Index samples = args.dy.rows();
    VectorsByPosition<const Scalar> dy{args.dy.data(), args.dy.cols(), last_ ? 0 : width()};
    for (Index level = levels_ - 1; level >= 0; --level) {
      const Index size = positions_ * at(directions_, level * directions_per_level_).inputs;
      Matrix dx = level > 0
                      ? matrix_in(level % 2 == 0 ? step_memory().even : step_memory().odd, samples, size)
                      : Matrix(args.dx() == nullptr ? nullptr : args.dx()->data(), samples, size);
      if (dx.data() != nullptr) std::ranges::fill(dx.values(), Scalar{0});
      for (Index i = 0; i < directions_per_level_; ++i)
        backward_direction(args, at(directions_, level * directions_per_level_ + i), dy, dx);
      dy = {dx.data(), size, size / positions_};
    }
  }

  bool takes_sequences() const override { return true; }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    using List = std::vector<Index>;
    const auto turned = [&](const std::string& value, const List& perm, const List& dims) {
      return graph.reshape(graph.transpose(value, perm), dims);
    };
    std::string x = graph.transpose(onnx_masked(graph, layer), {1, 0, 2});
    std::string lengths;
    if (!layer.lengths.empty()) {
      const std::string row = graph.reshape(onnx_lengths(graph, layer), {-1});
      lengths = graph.add("Cast", {row}, {{"to", kOnnxInt32}});
    }
    for (Index level = 0; level < levels_; ++level) {
      const bool is_top = level + 1 == levels_;
      std::vector<OnnxAttribute> attributes{{"hidden_size", units_}};
      if (directions_per_level_ == 2) attributes.emplace_back("direction", "bidirectional");
      if (Cell::kLinearBeforeReset) attributes.emplace_back("linear_before_reset", Index{1});
      std::vector<std::string> inputs{x, onnx_weights(graph, layer, level, {0}),
                                      onnx_weights(graph, layer, level, {1})};
      if (has_bias_) inputs.push_back(onnx_weights(graph, layer, level, {2, 3}));
      if (!has_bias_ && !lengths.empty()) inputs.emplace_back();
      if (!lengths.empty()) inputs.push_back(lengths);
      const std::string states = graph.add(Cell::kOnnxName, inputs, attributes, is_top && last_ ? 1 : 0);
      if (is_top && last_) return turned(states, {1, 0, 2}, {-1, width()});
      x = is_top ? turned(states, {2, 0, 1, 3}, {0, 0, width()})
                 : turned(states, {0, 2, 1, 3}, {0, 0, width()});
    }
    return x;
  }

 private:
  Index width() const { return directions_per_level_ * units_; }
  Index sums() const { return kSums * units_; }
  bool is_output(Index level) const { return !last_ && level + 1 == levels_; }

  // PyTorch's names, and its start.
  void declare(Direction& own, ParamDeclarer& params) const {
    constexpr std::array<const char*, 4> kNames{"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    Shape shape{{Cell::kGates * units_, own.inputs}};
    for (std::size_t i = 0; i < (has_bias_ ? 4U : 2U); ++i) {
      if (i == 1) shape.dims[1] = units_;
      if (i == 2) shape.dims.pop_back();
      const std::string name = fmt::format("{}_l{}{}", kNames[i], own.level, own.reverse ? "_reverse" : "");
      own.tensors[i] = params.declare({.name = name,
                                       .shape = shape,
                                       .decays = i < 2,
                                       .initialiser = Initialiser::kUniform,
                                       .deviation = std::sqrt(1 / static_cast<double>(units_))});
    }
  }

  VectorsByPosition<const Scalar> input_of(const Direction& own, const PassArgs& args,
                                           std::span<const Scalar> cache) const {
    if (own.level == 0) return {args.x().data(), args.x().cols(), own.inputs};
    return {cache.data() + own.below, cache_size_, width()};
  }
  template <class T>
  VectorsByPosition<T> states_of(const Direction& own, std::span<T> cache, T* y) const {
    if (!is_output(own.level)) return {cache.data() + own.states, cache_size_, width()};
    return {y + (own.reverse ? units_ : 0), positions_ * width(), width()};
  }

  // Calls visit(row, position) for each sample that has this step.
  template <class Visit>
  void at_step(const PassArgs& args, const Direction& own, Index step, const Visit& visit) const {
    for (Index row = 0; row < args.x().rows(); ++row) {
      const Index length = args.lengths.of(row, positions_);
      if (step < length) visit(row, own.position(step, length));
    }
  }
  Index steps(const PassArgs& args) const {
    Index most = 0;
    for (Index row = 0; row < args.x().rows(); ++row) most = std::max(most, args.lengths.of(row, positions_));
    return most;
  }

  // [W_ih W_hh b_ih b_hh] has a row for each sum. Calls visit(row, columns, begin) for each part of a row
  // that stands in the arena, at `begin`; the others are 0.
  template <class Visit>
  void for_each_part(const Direction& own, const Visit& visit) const {
    const std::array<Index, 5> borders{0, own.inputs, own.inputs + units_, own.inputs + units_ + 1,
                                       own.inputs + units_ + 2};
    for (std::size_t tensor = 0; tensor < own.tensors.size(); ++tensor) {
      const Range columns{borders[tensor], borders[tensor + 1]};
      for (Index row = 0; row < sums() && !own.tensors[tensor].empty(); ++row) {
        const Index gate = at(tensor % 2 == 0 ? Cell::kOfInput : Cell::kOfState, row / units_);
        if (gate == kNoGate) continue;
        visit(row, columns, own.tensors[tensor].begin + (gate * units_ + row % units_) * columns.size());
      }
    }
  }

  Matrix weights(const PassArgs& args, const Direction& own, Range taken, AlignedBuffer<Scalar>& to) const {
    Matrix result = zeros_in(to, sums(), taken.size());
    for_each_part(own, [&](Index row, Range columns, Index begin) {
      if (!taken.contains(columns)) return;
      std::copy_n(args.weights.data() + begin, columns.size(), &result(row, columns.begin - taken.begin));
    });
    return result;
  }

  // The product with weights that stay the same: a w^T or, backward, a w. They lie in the thread's memory, so
  // the next call ends it.
  static auto product(Precision precision, bool back, const ConstMatrix& w) {
    thread_local PackedMatrix packed;
    thread_local AlignedBuffer<Bf16> buffer;
    const bool exact = precision == Precision::kFp32;
    const Bf16Matrix rounded = exact ? Bf16Matrix(nullptr, 0, 0) : rounded_into(w, buffer);
    Matrix turned = matrix_in(step_memory().turned, w.cols(), w.rows());
    if (exact && !back) transpose(w, turned.data(), w.rows());
    if (exact) packed.pack(back ? w : turned);
    return [exact, back, rounded](const ConstMatrix& a, Matrix& c) {
      if (exact) return packed.multiply(a, c);
      if (back) return multiply_backward_data(rounded_output_gradient(a), rounded, c);
      multiply_forward(rounded_input(a), rounded, {}, c);
    };
  }

  void forward_direction(const ForwardArgs& args, const Direction& own) const {
    const Index samples = args.y.rows();
    const VectorsByPosition<const Scalar> x = input_of(own, args, args.cache);
    const VectorsByPosition<Scalar> states = states_of(own, args.cache, args.y.data());
    const VectorsByPosition<Scalar> kept{args.cache.data() + own.kept, cache_size_, Cell::kKept * units_};
    Matrix rows = zeros_in(step_memory().rows, samples, own.inputs + units_);
    Matrix carry = zeros_in(step_memory().carry, samples, units_);
    Matrix results = matrix_in(step_memory().sums, samples, sums());
    Matrix bias = zeros_in(step_memory().bias, 1, sums());
    for_each_part(own, [&](Index row, Range columns, Index begin) {
      if (columns.begin >= rows.cols()) bias(0, row) += at(args.weights, begin);
    });
    const auto multiply =
        product(precision_, false, weights(args, own, {0, rows.cols()}, step_memory().weights));
    for (Index step = 0, count = steps(args); step < count; ++step) {
      at_step(args, own, step, [&](Index row, Index position) {
        std::copy_n(x.of(row, position), own.inputs, &rows(row, 0));
      });
      multiply(rows, results);
      at_step(args, own, step, [&](Index row, Index position) {
        Scalar* const h = &rows(row, own.inputs);
        Cell::forward({units_, &results(row, 0), bias.data(), &carry(row, 0), h, kept.of(row, position)});
        std::copy_n(h, units_, states.of(row, position));
      });
    }
    for (Index row = 0; row < samples; ++row) {
      if (last_ && own.level + 1 == levels_)
        std::copy_n(&rows(row, own.inputs), units_, &args.y(row, own.reverse ? units_ : 0));
      for (Index position = args.lengths.of(row, positions_); position < positions_; ++position)
        std::fill_n(states.of(row, position), units_, Scalar{0});
    }
  }

  // Adds to dx, which has no data where nobody wants it.
  void backward_direction(const BackwardArgs& args, const Direction& own, VectorsByPosition<const Scalar> dy,
                          Matrix& dx) const {
    const Index samples = args.dy.rows();
    const Index width = own.inputs + units_;
    if (own.reverse) dy.data += units_;
    StepGradients of{zeros_in(step_memory().dh, samples, units_),
                     zeros_in(step_memory().carry, samples, units_),
                     zeros_in(step_memory().dw, width, sums()), zeros_in(step_memory().db, 1, sums()),
                     weights(args, own, {0, own.inputs}, step_memory().input_weights)};
    const auto multiply =
        product(precision_, true, weights(args, own, {own.inputs, width}, step_memory().weights));
    const Index at_once = std::max<Index>(kRowsAtOnce / std::max<Index>(samples, 1), 1);
    for (Index end = steps(args); end > 0; end -= std::min(end, at_once)) {
      const Range steps{std::max<Index>(end - at_once, 0), end};
      const StepRows rows = backward_cells(args, own, steps, dy, multiply, of);
      backward_products(args, own, steps, rows, of, dx);
    }
    Matrix dw = matrix_in(step_memory().dw_turned, sums(), width);
    transpose(of.dw, dw.data(), width);
    for_each_part(own, [&](Index row, Range columns, Index begin) {
      const Scalar* from = columns.begin < width ? &dw(row, columns.begin) : &of.db(0, row);
      Scalar* to = args.gradient.data() + begin;
      if (args.write == Write::kReplace) std::fill_n(to, columns.size(), Scalar{0});
      for (Index i = 0; i < columns.size(); ++i) to[i] += from[i];
    });
  }

  // The rows of a sample that has not these steps are 0.
  template <class Multiply>
  StepRows backward_cells(const BackwardArgs& args, const Direction& own, Range steps,
                          const VectorsByPosition<const Scalar>& dy, const Multiply& multiply,
                          StepGradients& of) const {
    const Index samples = args.dy.rows();
    const VectorsByPosition<const Scalar> x = input_of(own, args, args.cache);
    const VectorsByPosition<const Scalar> states = states_of(own, args.cache, args.y.data());
    const VectorsByPosition<const Scalar> kept{args.cache.data() + own.kept, cache_size_,
                                               Cell::kKept * units_};
    const auto fresh = args.lengths.given() ? zeros_in : matrix_in;
    Matrix rows = fresh(step_memory().rows, steps.size() * samples, of.dw.rows());
    Matrix gradients = fresh(step_memory().sums, steps.size() * samples, sums());
    const Matrix zeros = zeros_in(step_memory().zeros, 1, units_);
    for (Index step = steps.end - 1; step >= steps.begin; --step) {
      const Index first = (step - steps.begin) * samples;
      at_step(args, own, step, [&](Index row, Index position) {
        Scalar* const h = &rows(first + row, own.inputs);
        std::copy_n(x.of(row, position), own.inputs, h - own.inputs);
        const Index before = position + (own.reverse ? 1 : -1);
        std::copy_n(step > 0 ? states.of(row, before) : zeros.data(), units_, h);
        const bool is_seen = dy.position_stride > 0 || step + 1 == args.lengths.of(row, positions_);
        Cell::backward({units_, kept.of(row, position), h, is_seen ? dy.of(row, position) : zeros.data(),
                        &of.dh(row, 0), &of.carry(row, 0), &gradients(first + row, 0)});
      });
      if (step > 0) multiply(ConstMatrix(&gradients(first, 0), samples, sums()), of.dh);
    }
    return {rows, gradients};
  }

  void backward_products(const BackwardArgs& args, const Direction& own, Range steps,
                         const StepRows& of_steps, StepGradients& of, Matrix& dx) const {
    const Index samples = args.dy.rows();
    const ConstMatrix rows = of_steps.rows;
    const ConstMatrix gradients = of_steps.gradients;
    Matrix by_step = matrix_in(step_memory().dx, dx.data() == nullptr ? 0 : rows.rows(), own.inputs);
    const auto multiply = [&](const auto& x, const auto& d, const auto& convert) {
      multiply_backward_weights(x, d, {0, rows.cols()}, of.dw, Write::kAdd);
      if (dx.data() != nullptr) multiply_backward_data(d, convert(of.input_weights), by_step);
    };
    sum_rows(gradients, of.db.values(), Write::kAdd);
    if (precision_ == Precision::kFp32) {
      multiply(rows, gradients, std::identity());
    } else {
      multiply(rounded_input(rows), rounded_output_gradient(gradients), rounded_input);
    }
    if (dx.data() == nullptr) return;
    for (Index step = steps.begin; step < steps.end; ++step) {
      at_step(args, own, step, [&](Index row, Index position) {
        const Scalar* const from = &by_step((step - steps.begin) * samples + row, 0);
        Scalar* const to = &dx(row, position * own.inputs);
        for (Index i = 0; i < own.inputs; ++i) to[i] += from[i];
      });
    }
  }

  // These tensors of all directions of a level, one behind the other, with gates in ONNX's order.
  std::string onnx_weights(OnnxNodes& graph, const OnnxLayer& layer, Index level,
                           const std::vector<Index>& tensors) const {
    std::vector<Index> rows;
    for (const Index gate : Cell::kOnnxGates) {
      for (Index unit = 0; unit < units_; ++unit) rows.push_back(gate * units_ + unit);
    }
    std::vector<std::string> directions;
    for (Index i = 0; i < directions_per_level_; ++i) {
      const Index first = (level * directions_per_level_ + i) * (has_bias_ ? 4 : 2);
      std::vector<std::string> parts;
      for (const Index tensor : tensors) {
        const std::string& whole = at(layer.tensors, first + tensor);
        parts.push_back(graph.add("Gather", {whole, graph.add_list(rows)}, {{"axis", Index{0}}}));
      }
      const std::string joined = graph.add("Concat", parts, {{"axis", Index{0}}});
      directions.push_back(graph.add("Unsqueeze", {joined, graph.add_list({0})}));
    }
    return graph.add("Concat", directions, {{"axis", Index{0}}});
  }

  Index units_;
  Index levels_;
  Index directions_per_level_;
  bool last_;
  bool has_bias_;
  Precision precision_ = Precision::kFp32;
  Index positions_ = 0;
  Index cache_size_ = 0;
  std::vector<Direction> directions_;  // level by level
};

template <class Cell>
LayerEntry recurrent_entry(const std::string& help) {
  return {.name = Cell::kName,
          .signature =
              fmt::format("{}(units, layers=1, bidirectional=false, last=false, bias=true)", Cell::kName),
          .help = help,
          .example = fmt::format("{}(4)", Cell::kName),
          .example_input = {.dims = {3, 2}, .sequence = true},
          .make = [](TermArguments& arguments) { return std::make_unique<Recurrent<Cell>>(arguments); }};
}

}  // namespace

std::vector<LayerEntry> recurrent_layers() {
  return {
      recurrent_entry<LstmCell>(
          "of a sequence: long short-term memory (Hochreiter & Schmidhuber 1997), with gates, tensors and "
          "start as in PyTorch: its states at each position; layers stand on each other; bidirectional: "
          "beside them the states of the reverse direction, which begins at the last position; last=true: a "
          "vector, the state after the last position, and of the reverse direction that at the first; in "
          "bf16 the operands of products are rounded, the states among them"),
      recurrent_entry<GruCell>("of a sequence: gated recurrent units (Cho et al. 2014), linear before the "
                               "reset as in PyTorch; the rest as for lstm")};
}

}  // namespace lockstep
