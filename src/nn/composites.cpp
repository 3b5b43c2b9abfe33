// Every composite, and the layers that join their chains.
#include "lockstep/nn/composite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/nn/onnx_words.h"
#include "model_builder.h"
#include "nn/layers/layer_parts.h"

namespace lockstep {
namespace {

// Errors: ConfigError if `term` has not exactly `count` chains (0: at least two).
void expect_chains(const ModelBuilder& graph, const Term& term, const std::string& path, std::size_t count) {
  if (count == 0 ? term.chains.size() >= 2 : term.chains.size() == count) return;
  throw graph.error(path, term.text,
                    fmt::format("{} chain{} of layers between '|', expected {}", term.chains.size(),
                                term.chains.size() == 1 ? "" : "s",
                                count == 0 ? std::string("at least 2") : std::to_string(count)));
}

// y = a + b + ...: the join of residual and wide_deep.
class Sum final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    for (const Shape& other : inputs) {
      if (other == inputs.front()) continue;
      throw ConfigError("cannot add {} and {}: both must give the same shape", to_string(inputs.front()),
                        to_string(other));
    }
    return {.out = inputs.front(),
            .reads_input = false,
            .flops = inputs.front().size() * static_cast<Index>(inputs.size() - 1),
            .kept_size = 0};
  }

  void forward(const ForwardArgs& args) const override {
    Array y = as_array(args.y);
    y = as_array(args.inputs[0]) + as_array(args.inputs[1]);
    for (const ConstMatrix& more : args.inputs.subspan(2)) y += as_array(more);
  }

  void backward(const BackwardArgs& args) const override {
    for (Matrix* dinput : args.dinputs) {
      if (dinput != nullptr) as_array(*dinput) = as_array(args.dy);
    }
  }

  bool takes_sequences() const override { return true; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Sum", layer.inputs);
  }
};

// The outputs of several chains side by side. Joins the last dimension: features of vectors, channels of
// images.
class Concat final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    Shape out = inputs.front();
    out.dims.back() = 0;
    for (const Shape& shape : inputs) {
      Shape same = inputs.front();
      same.dims.back() = shape.dims.back();
      error_if(same != shape, "cannot put {} and {} side by side: all but the last number must agree",
               to_string(inputs.front()), to_string(shape));
      widths_.push_back(shape.dims.back());
      out.dims.back() += shape.dims.back();
    }
    width_ = out.dims.back();
    return {.out = out, .reads_input = false, .kept_size = 0};
  }

  void forward(const ForwardArgs& args) const override {
    Index offset = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const Scalar* from = args.inputs[i].data();
      for (Scalar* to = args.y.data() + offset; to < args.y.data() + args.y.size(); to += width_) {
        std::copy_n(from, widths_[i], to);
        from += widths_[i];
      }
      offset += widths_[i];
    }
  }

  void backward(const BackwardArgs& args) const override {
    Index offset = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (args.dinputs[i] != nullptr) {
        Scalar* to = args.dinputs[i]->data();
        for (const Scalar* from = args.dy.data() + offset; from < args.dy.data() + args.dy.size();
             from += width_) {
          std::copy_n(from, widths_[i], to);
          to += widths_[i];
        }
      }
      offset += widths_[i];
    }
  }

  bool takes_sequences() const override { return true; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Concat", layer.inputs, {{"axis", onnx_last_axis(layer.in.front())}});
  }

 private:
  std::vector<Index> widths_;
  Index width_ = 0;
};

CompositeEntry concat_entry() {
  return {.name = "concat",
          .signature = "concat(layers | layers | ...)",
          .help =
              "several chains on the same input, their outputs side by side (features of vectors, channels "
              "of images); tensors are named by chain, 0.N, 1.N, ...",
          .example = "concat(dense(3) | dense(2) tanh | relu)",
          .example_input = {{5}},
          .build = [](ModelBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 0);
            std::vector<Index> ends;
            for (const std::vector<Term>& chain : term.chains) {
              ends.push_back(graph.add_chain(chain, input, fmt::format("{}.{}", path, ends.size())));
            }
            return graph.add_layer(std::make_unique<Concat>(), ends, path, term.name);
          }};
}

// A stride that takes an image of `from` to one of `to` pixels under a window of one pixel.
Index stride_between(Index from, Index to) {
  const Index stride = to == 0 ? 1 : divide_up(from, to);
  return (from - 1) / stride + 1 == to ? stride : 0;
}

// He et al. 2015, option B: a linear projection. "" if none can be.
std::string projection(const Shape& from, const Shape& to) {
  const auto in = as_image(from);
  const auto out = as_image(to);
  if (from.sequence && to.sequence) {
    const Index stride = stride_between(from.dims[0], to.dims[0]);
    return stride == 0 ? "" : fmt::format("conv1d({}, 1, stride={}, bias=false)", to.dims[1], stride);
  }
  if (from.sequence || to.sequence) return "";
  if (!in && !out) return fmt::format("dense({}, bias=false)", to.size());
  if (!in || !out) return "";
  const Index stride = stride_between(in->height, out->height);
  if (stride == 0 || stride != stride_between(in->width, out->width)) return "";
  return fmt::format("conv2d({}, 1, stride={}, bias=false)", out->channels, stride);
}

// x + body(x), with a projection of x where the shapes differ.
CompositeEntry residual_entry() {
  return {.name = "residual",
          .signature = "residual(layers)",
          .help =
              "x + layers(x) (He et al. 2015); where the shapes differ x goes through a projection, conv2d "
              "or conv1d of one pixel or position with a stride, or dense, without bias; tensors are named "
              "body.N and shortcut",
          .example = "residual(dense(6) tanh dense(4))",
          .example_input = {{5}},
          .build = [](ModelBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 1);
            const Index body = graph.add_chain(term.chains[0], input, path + ".body");
            Index shortcut = input;
            if (graph.shape(input) != graph.shape(body)) {
              const std::string layer = projection(graph.shape(input), graph.shape(body));
              if (layer.empty()) {
                throw graph.error(path, term.name,
                                  fmt::format("no projection takes {} to {}, so that they could be added",
                                              to_string(graph.shape(input)), to_string(graph.shape(body))));
              }
              shortcut = graph.add_layer(layer, input, path + ".shortcut");
            }
            return graph.add_layer(std::make_unique<Sum>(), {shortcut, body}, path, term.name);
          }};
}

// wide(x) + deep(x).
CompositeEntry wide_deep_entry() {
  return {.name = "wide_deep",
          .signature = "wide_deep(layers | layers)",
          .help =
              "the sum of a wide (linear) part and a deep part, trained together (Cheng et al. 2016); "
              "tensors are named wide.N and deep.N",
          .example = "wide_deep(dense(4) | dense(6) relu dense(4))",
          .example_input = {{7}},
          .build = [](ModelBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 2);
            const Index wide = graph.add_chain(term.chains[0], input, path + ".wide");
            const Index deep = graph.add_chain(term.chains[1], input, path + ".deep");
            return graph.add_layer(std::make_unique<Sum>(), {wide, deep}, path, term.name);
          }};
}

// A composite of sequences that is a text of other layers. `write`: makes it of the arguments and the
// channels; its errors (ConfigError) need not name the place.
template <class Write>
auto written_as(Write write) {
  return [write](ModelBuilder& graph, const Term& term, Index input, const std::string& path) {
    std::string layers;
    try {
      TermArguments arguments(term);
      layers = write(arguments, expect_sequence(graph.shape(input)).channels);
      arguments.finish();
    } catch (const ConfigError& problem) {
      throw graph.error(path, term.text, problem.what());
    }
    return graph.add_chain(parse_layers(layers), input, path);
  };
}

// The arguments that attention and transformer share.
struct AttentionArguments {
  AttentionArguments(TermArguments& arguments, std::string_view key_of_dropout)
      : heads(arguments.take_index("heads", 1)),
        kv_heads(arguments.take_index("kv_heads", 1, heads)),
        causal(arguments.take_flag("causal", false)),
        window(arguments.take_index("window", 0, 0)),
        rotary(arguments.take_flag("rotary", false)),
        dropout(arguments.take_number(key_of_dropout, 0)),
        bias(arguments.take_flag("bias", true) ? "" : ", bias=false") {}

  // But for what is as if it were not given.
  std::string of_attend() const {
    return fmt::format("{}{}{}{}{}{}", heads, causal ? ", causal=true" : "",
                       kv_heads == heads ? "" : fmt::format(", kv_heads={}", kv_heads),
                       window == 0 ? "" : fmt::format(", window={}", window), rotary ? ", rotary=true" : "",
                       dropout == 0 ? "" : fmt::format(", dropout={}", dropout));
  }

  Index heads;
  Index kv_heads;
  bool causal;
  Index window;
  bool rotary;
  double dropout;  // of weights
  std::string bias;
};

std::string write_attention(TermArguments& arguments, Index channels) {
  const AttentionArguments own(arguments, "dropout");
  error_if(channels % own.heads != 0, "{} heads do not divide the {} channels into equal parts", own.heads,
           channels);
  const auto init = [&](std::string_view key) {
    const std::string word = arguments.take_word(key, "");
    return word.empty() ? "" : fmt::format(", init={}", word);
  };
  const std::string first = init("init");
  return fmt::format("dense({}{}{}) attend({}) dense({}{}{})",
                     channels / own.heads * (own.heads + 2 * own.kv_heads), own.bias, first, own.of_attend(),
                     channels, own.bias, init("out_init"));
}

CompositeEntry attention_entry() {
  return {
      .name = "attention",
      .signature =
          "attention(heads, kv_heads=heads, causal=false, window=0, rotary=false, dropout=0, bias=true, "
          "init=WORD, out_init=WORD)",
      .help =
          "dense layers around attend (Vaswani et al. 2017), of which the first makes queries, keys and "
          "values side by side; kv_heads: so many keys and values, shared by neighbouring heads; causal: a "
          "position sees none behind it; window: it sees only positions nearer than this; rotary: turns "
          "queries and keys by their position (Su et al. 2021); dropout: of the weights, in training; "
          "out_init: init of the last dense layer",
      .example = "attention(2, causal=true)",
      .example_input = SequenceShape{.positions = 4, .channels = 6}.shape(),
      .takes_layers = false,
      .build = written_as(write_attention)};
}

// The first of `known` if none is given.
std::string take_one_of(TermArguments& arguments, std::string_view key,
                        const std::vector<std::string>& known) {
  std::string word = arguments.take_word(key, known.front());
  if (std::ranges::find(known, word) != known.end()) return word;
  throw ConfigError("'{}' must be {}, found {}", key, fmt::join(known, " or "), in_quotes(word));
}

// Radford et al. 2019: all matrices start with a deviation of 0.02, those that are added to what goes around
// them with that through the root of how many there are.
std::string write_transformer(TermArguments& arguments, Index channels) {
  const Index blocks = arguments.take_index("blocks", 1);
  const AttentionArguments own(arguments, "attention_dropout");
  const std::string function = take_one_of(arguments, "mlp", {"gelu", "gelu(tanh)", "swiglu"});
  const bool gated = function == "swiglu";
  const Index hidden =
      arguments.take_index("hidden", 1, gated ? round_up(8 * channels / 3, kAlignment) : 4 * channels);
  const std::string norm = take_one_of(arguments, "norm", {"layer_norm", "rms_norm"});
  const double dropout = arguments.take_number("dropout", 0);
  const std::string last = dropout == 0 ? "" : fmt::format(" dropout({})", dropout);
  const std::string out = fmt::format("normal({:.6g})", 0.02 / std::sqrt(2.0 * static_cast<double>(blocks)));
  const std::string attention = fmt::format("residual({} attention({}{}, init=normal(0.02), out_init={}){}) ",
                                            norm, own.of_attend(), own.bias, out, last);
  const std::string perceptron =
      fmt::format("residual({} dense({}{}, init=normal(0.02)) {} dense({}{}, init={}){}) ", norm,
                  gated ? 2 * hidden : hidden, own.bias, function, channels, own.bias, out, last);
  std::string layers;
  for (Index block = 0; block < blocks; ++block) layers += attention + perceptron;
  return layers;
}

CompositeEntry transformer_entry() {
  return {
      .name = "transformer",
      .signature =
          "transformer(blocks, heads, kv_heads=heads, causal=false, window=0, rotary=false, bias=true, "
          "mlp=gelu, hidden=N, norm=layer_norm, dropout=0, attention_dropout=0)",
      .help =
          "so many blocks of attention and a perceptron, each with a norm before it and x added behind it, "
          "that start as those of GPT-2 (Radford et al. 2019); mlp: gelu, gelu(tanh) or swiglu, norm: "
          "layer_norm or rms_norm; hidden: units of the perceptron, four times the channels (8 / 3 with "
          "swiglu); the others as for attention",
      .example = "transformer(1, 2, causal=true)",
      .example_input = SequenceShape{.positions = 4, .channels = 4}.shape(),
      .takes_layers = false,
      .build = written_as(write_transformer)};
}

}  // namespace

std::span<const CompositeEntry> composite_catalog() {
  static const std::array kEntries{residual_entry(), concat_entry(), wide_deep_entry(), attention_entry(),
                                   transformer_entry()};
  return kEntries;
}

std::vector<Term> parse_layers(std::string_view text) {
  TermsOption option;
  for (const CompositeEntry& entry : composite_catalog()) {
    if (entry.takes_layers) option.composites.push_back(entry.name);
  }
  return parse_terms(text, option);
}

std::span<const PresetEntry> preset_catalog() {
  static const std::vector<PresetEntry> kEntries = [] {
    std::vector<PresetEntry> entries;
    for (const TextEntry& entry : embedded_entries("texts/presets.txt")) {
      entries.push_back({.name = entry.name, .help = entry.get("help"), .text = entry.get("layers")});
    }
    return entries;
  }();
  return kEntries;
}

std::string preset_layers(std::string_view name, Index outputs) {
  return fmt::format(fmt::runtime(find_entry(preset_catalog(), "preset", name).text),
                     fmt::arg("outputs", outputs));
}

std::string model_text(const ModelOptions& options) {
  return options.preset.empty() ? options.layers : preset_layers(options.preset, options.outputs);
}

}  // namespace lockstep
