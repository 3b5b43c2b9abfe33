// Attention between the dense layers that make queries, keys and values and that join the heads, which has no
// weights (math/attention.h) and in bf16 runs computes in fp32; and positions, which attention does not see
// by itself.
#include <cmath>
#include <cstring>

#include "layer_parts.h"
#include "lockstep/math/attention.h"

namespace lockstep {
namespace {

// The angles of sinusoidal and of rotary positions (Vaswani et al. 2017, section 3.5): position t has size /
// 2 of them, t / 10000^(2 i / size).

constexpr double kAngleBase = 10000;

double position_angle(Index position, Index i, Index size) {
  return static_cast<double>(position) *
         std::pow(kAngleBase, -2.0 * static_cast<double>(i) / static_cast<double>(size));
}

// The numbers 0, 1, ... below `count` as floats.
std::string onnx_numbers(OnnxNodes& graph, Index count) {
  std::vector<Index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  return graph.add("Cast", {graph.add_list(numbers)}, {{"to", kOnnxFloat}});
}

// The numbers of the positions that the sequence has, of at most so many, as floats of this shape.
std::string onnx_position_numbers(OnnxNodes& graph, const std::string& sequence, Index positions,
                                  const std::vector<Index>& shape) {
  const std::string numbers = onnx_first_rows(graph, onnx_numbers(graph, positions), sequence);
  return graph.reshape(numbers, shape);
}

// [positions of the sequence, size / 2]
std::string onnx_angles(OnnxNodes& graph, const std::string& sequence, Index positions, Index size) {
  const std::string exponents =
      graph.add("Mul", {onnx_numbers(graph, size / 2),
                        graph.add_number(-2 * std::log(kAngleBase) / static_cast<double>(size))});
  return graph.add(
      "Mul", {onnx_position_numbers(graph, sequence, positions, {-1, 1}), graph.add("Exp", {exponents})});
}

// Adds to each position of a sequence a vector that says which it is.

class Positions final : public Layer {
 public:
  explicit Positions(TermArguments& arguments)
      : kind_(arguments.take_next("learned or sinusoidal")), init_(arguments) {
    if (kind_ != "learned" && kind_ != "sinusoidal")
      throw ConfigError("expected learned or sinusoidal, found {}", in_quotes(kind_));
    error_if(init_.given() && !is_learned(), "sinusoidal positions have no weights: leave out init");
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    sequence_ = expect_sequence(inputs.front());
    const auto [positions, channels] = sequence_;
    const LayerTraits traits{.out = inputs.front(),
                             .in_place = true,
                             .reads_input = false,
                             .flops = positions * channels,
                             .kept_size = 0};
    if (is_learned()) {
      weight_ = params.declare(init_.of(
          params,
          {.name = "weight", .shape = {{positions, channels}}, .fan_in = channels, .fan_out = positions}));
      return traits;
    }
    error_if(channels % 2 != 0,
             "sinusoidal positions are pairs of a sine and a cosine, and there are {} channels", channels);
    waves_ = AlignedBuffer<Scalar>(positions * channels);
    for (Index t = 0; t < positions; ++t) {
      for (Index i = 0; i < channels; ++i) {
        const double angle = position_angle(t, i / 2, channels);
        at(waves_.span(), t * channels + i) =
            static_cast<Scalar>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
    return traits;
  }

  void forward(const ForwardArgs& args) const override {
    if (args.y.data() != args.x().data()) std::ranges::copy(args.x().values(), args.y.data());
    add_to_rows(vectors(args), args.y);
  }
  void forward_next(const ForwardArgs& args, Index position, std::span<Scalar>) const override {
    const Index channels = sequence_.channels;
    std::ranges::copy(args.x().values(), args.y.data());
    add_to_rows(part(vectors(args), {position * channels, (position + 1) * channels}), args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (is_learned()) sum_rows(args.dy, part(args.gradient, weight_), args.write);
    if (args.dx() != nullptr && args.dx()->data() != args.dy.data())
      std::ranges::copy(args.dy.values(), args.dx()->data());
  }

  bool takes_sequences() const override { return true; }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string& x = layer.inputs.front();
    if (is_learned()) return graph.add("Add", {x, onnx_first_rows(graph, layer.tensors.front(), x)});
    const auto [positions, channels] = sequence_;
    const std::string angles = onnx_angles(graph, x, positions, channels);
    const auto wave = [&, half = channels / 2](const char* function) {
      return graph.reshape(graph.add(function, {angles}), {-1, half, 1});
    };
    const std::string pairs = graph.add("Concat", {wave("Sin"), wave("Cos")}, {{"axis", Index{2}}});
    return graph.add("Add", {x, graph.reshape(pairs, {-1, channels})});
  }

 private:
  bool is_learned() const { return kind_ == "learned"; }
  std::span<const Scalar> vectors(const PassArgs& args) const {
    return is_learned() ? part(args.weights, weight_) : waves_.span();
  }

  std::string kind_;
  InitArgument init_;
  SequenceShape sequence_;
  Range weight_;
  AlignedBuffer<Scalar> waves_;
};

class Attend final : public Layer {
 public:
  explicit Attend(TermArguments& arguments) {
    shape_.heads = arguments.take_index("heads", 1);
    shape_.causal = arguments.take_flag("causal", false);
    shape_.kv_heads = arguments.take_index("kv_heads", 1, shape_.heads);
    shape_.window = arguments.take_index("window", 0, 0);
    rotary_ = arguments.take_flag("rotary", false);
    dropout_ = take_dropout_rate(arguments, "dropout", 0);
    error_if(shape_.heads % shape_.kv_heads != 0, "kv_heads must divide the {} heads, found {}", shape_.heads,
             shape_.kv_heads);
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    number_ = params.number();
    const SequenceShape in = expect_sequence(inputs.front());
    const Index vectors = shape_.heads + 2 * shape_.kv_heads;
    error_if(in.channels % vectors != 0,
             "{} heads of queries, {} of keys and {} of values do not divide {} channels", shape_.heads,
             shape_.kv_heads, shape_.kv_heads, in.channels);
    shape_.positions = in.positions;
    shape_.size = in.channels / vectors;
    if (rotary_) fill_rotation();
    Index pairs = 0;
    for (Index t = 0; t < shape_.positions; ++t) pairs += shape_.seen_by(t, shape_.positions).size();
    return {.out = SequenceShape{.positions = in.positions, .channels = shape_.output_width()}.shape(),
            .reads_output = true,
            .cache_size = cache_size(),
            .flops = 4 * pairs * shape_.output_width(),  // two products, of the pairs that are seen
            .kept_size = shape_.causal ? std::optional(kept_size()) : std::nullopt};
  }

  void forward(const ForwardArgs& args) const override {
    for (Index row = 0; row < args.y.rows(); ++row) {
      Scalar* const cache = args.cache.data() + row * cache_size();
      if (dropout_ > 0) keep_seed(args.batch, row, cache);
      attend(shape_, input_of(args, row, cache), args.y.data() + row * args.y.cols(), cache);
    }
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    for (Index row = 0; row < args.dy.rows(); ++row) {
      const Scalar* const cache = args.cache.data() + row * cache_size();
      attend_backward(shape_,
                      {.input = input_of(args, row, cache),
                       .y = args.y.data() + row * args.y.cols(),
                       .logs = cache,
                       .dy = args.dy.data() + row * args.dy.cols()},
                      args.dx()->data() + row * args.dx()->cols());
    }
  }

  void forward_next(const ForwardArgs& args, Index position, std::span<Scalar> kept) const override {
    for (Index row = 0; row < args.y.rows(); ++row) {
      attend_next(shape_, args.x().data() + row * args.x().cols(), position + 1,
                  kept.data() + row * kept_size(), args.y.data() + row * args.y.cols());
    }
  }

  bool takes_sequences() const override { return true; }

  // In 5 dimensions: samples, heads of keys, queries of each, positions, numbers.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string x = onnx_masked(graph, layer);  // no weight makes a number of padding that is none
    const auto heads = [&](Index first, Index group) {
      const Index begin = first * shape_.size;
      const Index end = begin + shape_.kv_heads * group * shape_.size;
      const std::string own = onnx_slice(graph, x, {begin, end}, 2);
      // 0 keeps what is there: samples and positions.
      const std::string split = graph.reshape(own, {0, 0, shape_.kv_heads, group, shape_.size});
      return graph.transpose(split, {0, 2, 3, 1, 4});
    };
    const std::string q = onnx_turned(graph, x, heads(0, shape_.group()));
    const std::string k = onnx_turned(graph, x, heads(shape_.heads, 1));
    const std::string v = heads(shape_.heads + shape_.kv_heads, 1);
    const std::string k_columns = graph.transpose(k, {0, 1, 2, 4, 3});
    const std::string factor = graph.add_number(1 / std::sqrt(static_cast<double>(shape_.size)));
    std::string scores = graph.add("Mul", {graph.add("MatMul", {q, k_columns}), factor});
    scores = masked_scores(graph, layer, scores);
    const std::string weights = graph.add("Softmax", {scores}, {{"axis", Index{4}}});
    const std::string values = graph.add("MatMul", {weights, v});
    const std::string by_position = graph.transpose(values, {0, 3, 1, 2, 4});
    return graph.reshape(by_position, {0, 0, shape_.output_width()});
  }

 private:
  static constexpr Index kSeedScalars = sizeof(std::uint64_t) / sizeof(Scalar);

  Index cache_size() const { return logs() + (dropout_ > 0 ? kSeedScalars : 0); }
  Index kept_size() const { return shape_.positions * 2 * shape_.kv_heads * shape_.size; }
  Index logs() const { return shape_.heads * shape_.positions; }

  // Behind the logs of a sample stands the seed of its draws, for the backward pass too; 0: nothing is
  // dropped.
  void keep_seed(const BatchContext& batch, Index row, Scalar* cache) const {
    std::uint64_t seed = 0;
    if (batch.training) seed = RandomStream(dropout_stream(batch, row, number_)).bits64() | 1;
    std::memcpy(cache + logs(), &seed, sizeof(seed));
  }

  AttentionInput input_of(const PassArgs& args, Index row, const Scalar* cache) const {
    AttentionInput input{.x = args.x().data() + row * args.x().cols(),
                         .length = args.lengths.of(row, shape_.positions)};
    if (dropout_ == 0) return input;
    std::memcpy(&input.dropout.seed, cache + logs(), sizeof(input.dropout.seed));
    if (input.dropout.seed != 0) input.dropout.rate = dropout_;
    return input;
  }

  void fill_rotation() {
    error_if(shape_.size % 2 != 0, "rotary=true turns pairs, and a head has {} numbers", shape_.size);
    const Index half = shape_.size / 2;
    rotation_ = AlignedBuffer<Scalar>(shape_.positions * shape_.size);
    for (Index t = 0; t < shape_.positions; ++t) {
      for (Index i = 0; i < half; ++i) {
        const double angle = position_angle(t, i, shape_.size);
        at(rotation_.span(), t * shape_.size + i) = static_cast<Scalar>(std::cos(angle));
        at(rotation_.span(), t * shape_.size + half + i) = static_cast<Scalar>(std::sin(angle));
      }
    }
    shape_.rotation = rotation_.span();
  }

  // `sequence`: the input, which says how many positions there are.
  std::string onnx_turned(OnnxNodes& graph, const std::string& sequence, const std::string& heads) const {
    if (!rotary_) return heads;
    const Index half = shape_.size / 2;
    const std::string angles = onnx_angles(graph, sequence, shape_.positions, shape_.size);
    const std::string cosines = graph.add("Cos", {angles});
    const std::string sines = graph.add("Sin", {angles});
    const std::string a = onnx_slice(graph, heads, {0, half}, 4);
    const std::string b = onnx_slice(graph, heads, {half, shape_.size}, 4);
    const std::string first =
        graph.add("Sub", {graph.add("Mul", {a, cosines}), graph.add("Mul", {b, sines})});
    const std::string second =
        graph.add("Add", {graph.add("Mul", {b, cosines}), graph.add("Mul", {a, sines})});
    return graph.add("Concat", {first, second}, {{"axis", Index{4}}});
  }

  std::string masked_scores(OnnxNodes& graph, const OnnxLayer& layer, std::string scores) const {
    const auto numbers = [&](const std::vector<Index>& shape) {
      return onnx_position_numbers(graph, layer.inputs.front(), shape_.positions, shape);
    };
    const std::string low = graph.add_number(-1e30);
    // How far a key lies before a query.
    const std::string distance = graph.add("Sub", {numbers({-1, 1}), numbers({1, -1})});
    const auto keep_if = [&](const std::string& is_seen) {
      scores = graph.add("Where", {is_seen, scores, low});
    };
    const auto keep_below = [&](const std::string& value, Index limit) {
      keep_if(graph.add("Greater", {graph.add_number(static_cast<double>(limit)), value}));
    };
    const auto backwards = [&] { return graph.add("Mul", {distance, graph.add_number(-1)}); };
    if (!layer.lengths.empty()) keep_if(graph.reshape(onnx_counted(graph, layer), {0, 1, 1, 1, -1}));
    if (shape_.window > 0) keep_below(distance, shape_.window);
    if (shape_.causal) keep_below(backwards(), 1);
    if (!shape_.causal && shape_.window > 0) keep_below(backwards(), shape_.window);
    return scores;
  }

  AttentionShape shape_;
  bool rotary_ = false;
  double dropout_ = 0;
  Index number_ = 0;
  AlignedBuffer<Scalar> rotation_;
};

}  // namespace

std::vector<LayerEntry> attention_layers() {
  return {
      {.name = "positions",
       .signature = "positions(learned | sinusoidal, init=WORD)",
       .help =
           "adds to each position of a sequence a vector of its own: a weight, or sines and cosines of many "
           "wavelengths (Vaswani et al. 2017); init as for dense",
       .example = "positions(learned)",
       .example_input = SequenceShape{.positions = 4, .channels = 3}.shape(),
       .make = [](TermArguments& arguments) { return std::make_unique<Positions>(arguments); }},
      {.name = "attend",
       .signature = "attend(heads, causal=false, kv_heads=heads, window=0, rotary=false, dropout=0)",
       .help = "scaled dot-product attention (Vaswani et al. 2017) of queries, keys and values that stand "
               "side by side in the channels: attention(heads) without its dense layers",
       .example = "attend(2, causal=true, kv_heads=1, rotary=true, dropout=0.3)",
       .example_input = SequenceShape{.positions = 4, .channels = 8}.shape(),
       .make = [](TermArguments& arguments) { return std::make_unique<Attend>(arguments); }}};
}

}  // namespace lockstep
