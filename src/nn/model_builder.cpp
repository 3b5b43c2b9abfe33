#include "model_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/catalog.h"
#include "lockstep/base/text.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

std::unique_ptr<Layer> make_layer(const Term& term) {
  std::vector<std::string> names = catalog_names(layer_catalog());
  for (const CompositeEntry& entry : composite_catalog()) names.push_back(entry.name);
  if (std::ranges::find(names, term.name) == names.end()) throw_unknown_name("layer", term.name, names);
  TermArguments arguments(term);
  std::unique_ptr<Layer> layer = find_entry(layer_catalog(), "layer", term.name).make(arguments);
  arguments.finish();
  return layer;
}

// Whether the layer of `second` may run before that of `first`, which stands before it in the text.
bool goes_first(const Term& second, const Term& first) {
  const auto entry = std::ranges::find(layer_catalog(), first.name, &LayerEntry::name);
  return entry != layer_catalog().end() && entry->lets_first == second.name;
}

// The positions of a chain's terms in the order in which they run: that of the text, but for a layer that
// goes before its neighbour because it makes the work smaller and changes no bit.
std::vector<std::size_t> run_order(std::span<const Term> chain) {
  std::vector<std::size_t> positions(chain.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (goes_first(chain[i + 1], chain[i])) std::swap(positions[i], positions[i + 1]);
  }
  return positions;
}

// The prediction is the mean of the members' predictions, so an output is what has that mean behind its link:
//
//   identity  mean of z[m]
//   log       log mean of e^z[m]
//   softmax   log mean of softmax(z[m]), for each class
//   logit     log mean of sigmoid(z[m]) - log mean of sigmoid(-z[m])
//
// Logarithms of means are taken of logarithms, the largest first, so that none is lost to underflow.

// log of the mean of e^value(m).
template <class Value>
Scalar log_mean_exp(Index members, const Value& value) {
  Scalar largest = value(0);
  for (Index m = 1; m < members; ++m) {
    const Scalar here = value(m);
    largest = here > largest || std::isnan(here) ? here : largest;
  }
  Scalar sum = 0;
  for (Index m = 0; m < members; ++m) sum += exp_nonpositive(value(m) - largest);
  return largest + logarithm(sum / static_cast<Scalar>(members));
}

class JoinedMembers final : public Layer {
 public:
  explicit JoinedMembers(Link link) : link_(link) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    members_ = inputs.front().dims[0];
    outputs_ = inputs.front().dims[1];
    return {
        .out = {{outputs_}}, .reads_input = false, .cache_size = cache_size(), .flops = members_ * outputs_};
  }

  void forward(const ForwardArgs& args) const override {
    for (Index row = 0; row < args.y.rows(); ++row) {
      join(args.x().data() + row * members_ * outputs_, args.cache.data() + row * cache_size(),
           args.y.data() + row * outputs_);
    }
  }
  // Training takes the loss of each member: see Model::members().
  void backward(const BackwardArgs&) const override {}

  // The input is [N, 1, members, outputs].
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.flatten(add_mean(graph, layer.inputs.front()));
  }

 private:
  Index cache_size() const { return link_ == Link::kSoftmax ? members_ : 0; }

  // [N, 1, 1, outputs]
  std::string add_mean(OnnxNodes& graph, const std::string& z) const {
    const std::vector<OnnxAttribute> over_members{{"axes", std::vector<Index>{1, 2}}};
    if (link_ == Link::kIdentity) return graph.add("ReduceMean", {z}, over_members);
    if (link_ == Link::kLogit) {
      const std::string minus = graph.add_number(-1);
      const auto log_sum = [&](const std::string& x) {
        const std::string logs = graph.add("Mul", {graph.add("Softplus", {x}), minus});
        return graph.add("ReduceLogSumExp", {logs}, over_members);
      };
      return graph.add("Sub", {log_sum(graph.add("Mul", {z, minus})), log_sum(z)});
    }
    const std::string logs = link_ == Link::kSoftmax ? graph.add("LogSoftmax", {z}, {{"axis", Index{3}}}) : z;
    const std::string count = graph.add_number(std::log(static_cast<double>(members_)));
    return graph.add("Sub", {graph.add("ReduceLogSumExp", {logs}, over_members), count});
  }

  // `totals`: memory for a number of each member, with softmax.
  void join(const Scalar* z, Scalar* totals, Scalar* y) const {
    for (Index m = 0; link_ == Link::kSoftmax && m < members_; ++m) {
      const Scalar* own = z + m * outputs_;
      totals[m] = log_mean_exp(outputs_, [own](Index i) { return own[i]; }) +
                  logarithm(static_cast<Scalar>(outputs_));
    }
    for (Index i = 0; i < outputs_; ++i) {
      const auto output = [&](Index m) { return z[m * outputs_ + i]; };
      switch (link_) {
        case Link::kIdentity: {
          Scalar sum = 0;
          for (Index m = 0; m < members_; ++m) sum += output(m);
          y[i] = sum / static_cast<Scalar>(members_);
          break;
        }
        case Link::kLog:
          y[i] = log_mean_exp(members_, output);
          break;
        case Link::kSoftmax:
          y[i] = log_mean_exp(members_, [&](Index m) { return output(m) - totals[m]; });
          break;
        case Link::kLogit:
          y[i] = log_mean_exp(members_, [&](Index m) { return -log_1_plus_exp(-output(m)); }) -
                 log_mean_exp(members_, [&](Index m) { return -log_1_plus_exp(output(m)); });
          break;
      }
    }
  }

  Link link_;
  Index members_ = 0;
  Index outputs_ = 0;
};

}  // namespace

// Appends the tensors of one op to the layouts.
class ModelBuilder::Declarer final : public ParamDeclarer {
 public:
  Declarer(ModelBuilder& builder, const std::string& path)
      : builder_(builder),
        path_(path),
        weights_start_(builder.weights_.size),
        state_start_(builder.state_.size) {}

  Initialiser default_initialiser() const override { return builder_.initialiser_; }
  BatchNormMode default_batch_norm() const override { return builder_.batch_norm_; }
  Precision precision() const override { return builder_.precision_; }
  Index number() const override { return std::ssize(builder_.ops_); }
  Range declare(ParamSpec spec) override {
    Layout& layout = is_kept(number()) ? builder_.weights_ : builder_.others_;
    const Range range = add(layout, std::move(spec));
    builder_.by_name_.emplace(layout.params.back().name, layout.params.back());
    return range;
  }
  Range declare_state(ParamSpec spec) override {
    return add(is_kept(number()) ? builder_.state_ : builder_.others_, std::move(spec));
  }

  Range tie(const std::string& layer, const Shape& shape) override {
    const auto found = builder_.by_name_.find(layer + ".weight");
    error_if(found == builder_.by_name_.end(),
             "cannot share the weight of layer {}: no earlier layer of that number has one",
             in_quotes(layer));
    const ParamInfo& owner = found->second;
    error_if(owner.shape != shape, "cannot share the weight of layer {}: that is {}, this needs {}",
             in_quotes(layer), to_string(owner.shape), to_string(shape));
    const bool borrowed = is_kept(number()) && !is_kept(owner.layer);
    tie_ = {.owner = owner.layer, .weight = borrowed ? borrow(owner) : owner.range, .borrowed = borrowed};
    return tie_->weight;
  }

  Range weights() const { return {weights_start_, builder_.weights_.size}; }
  Range state() const { return {state_start_, builder_.state_.size}; }
  const std::optional<Tie>& tie() const { return tie_; }

 private:
  bool is_kept(Index op) const {
    return std::ranges::any_of(builder_.kept_, [&](const Range& ops) { return ops.contains(op); });
  }

  Range borrow(const ParamInfo& owner) const {
    Layout& borrowed = builder_.borrowed_;
    const auto known = std::ranges::find(borrowed.params, owner.name, &ParamInfo::name);
    return known != borrowed.params.end() ? known->range : append(borrowed, owner);
  }

  Range add(Layout& layout, ParamSpec spec) const {
    return append(layout, {.name = fmt::format("{}.{}", path_, spec.name),
                           .shape = std::move(spec.shape),
                           .range = {},
                           .decays = spec.decays,
                           .looked_up = spec.looked_up,
                           .layer = number(),
                           .initialiser = spec.initialiser,
                           .fan_in = spec.fan_in,
                           .fan_out = spec.fan_out,
                           .deviation = spec.deviation});
  }

  ModelBuilder& builder_;
  const std::string& path_;
  Index weights_start_;
  Index state_start_;
  std::optional<Tie> tie_;
};

ModelBuilder::ModelBuilder(const ModelOptions& options, const Shape& input, std::span<const Range> kept)
    : option_(options.preset.empty() ? "model.layers" : fmt::format("model.preset '{}'", options.preset)),
      initialiser_(parse_initialiser(options.init)),
      precision_(options.precision),
      input_(input),
      kept_(kept.begin(), kept.end()) {
  try {
    batch_norm_ = parse_batch_norm_mode(options.batch_norm);
  } catch (const ConfigError& error) {
    throw ConfigError("model.batch_norm: {}", error.what());
  }
}

ConfigError ModelBuilder::error(const std::string& path, const std::string& text,
                                const std::string& problem) const {
  return ConfigError("{}: layer {} {}: {}", option_, path, in_quotes(text), problem);
}

Index ModelBuilder::add_chain(std::span<const Term> chain, Index input, const std::string& path) {
  for (const std::size_t position : run_order(chain)) {
    input = add_term(chain[position], input,
                     path.empty() ? std::to_string(position) : fmt::format("{}.{}", path, position));
  }
  return input;
}

Index ModelBuilder::add_term(const Term& term, Index input, const std::string& path) {
  for (const CompositeEntry& entry : composite_catalog()) {
    if (entry.name == term.name) return entry.build(*this, term, input, path);
  }
  std::unique_ptr<Layer> layer;
  try {
    layer = make_layer(term);
  } catch (const ConfigError& problem) {
    throw error(path, term.text, problem.what());
  }
  return add_layer(std::move(layer), {input}, path, term.text);
}

Index ModelBuilder::add_layer(const std::string& text, Index input, const std::string& path) {
  return add_term(parse_layers(text).front(), input, path);
}

Index ModelBuilder::add_layer(std::unique_ptr<Layer> layer, std::vector<Index> inputs,
                              const std::string& path, const std::string& text) {
  ModelOp op;
  op.path = path;
  op.text = text;
  op.title = fmt::format("layer {} {}", path, in_quotes(text));
  std::vector<std::string> shapes;
  for (const Index input : inputs) {
    op.in.push_back(shape(input));
    shapes.push_back(to_string(op.in.back()));
  }
  const bool by_position = op.in.front().sequence && !layer->takes_sequences();
  op.layer = by_position ? on_positions(std::move(layer)) : std::move(layer);
  op.inputs = std::move(inputs);
  Declarer declarer(*this, path);
  try {
    static_cast<LayerTraits&>(op) = op.layer->declare(op.in, declarer);
    find_lengths(op);
  } catch (const ConfigError& problem) {
    throw ConfigError("{}: {} on {}: {}", option_, op.title,
                      excerpt(fmt::format("{}", fmt::join(shapes, " and "))), problem.what());
  }
  op.params = declarer.weights();
  op.state = declarer.state();
  op.tie = declarer.tie();
  if (op.tie) {
    op.shares = true;
    at(ops_, op.tie->owner).shares = true;
  }
  ops_.push_back(std::move(op));
  return std::ssize(ops_) - 1;
}

void ModelBuilder::find_lengths(ModelOp& op) const {
  const auto lengths_of = [&](Index input) {
    if (input != kModelInput) return at(ops_, input).lengths_out;
    std::vector<Index> all(input_.sequence ? static_cast<std::size_t>(input_.dims[0] + 1) : 0);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
  };
  op.lengths_in = lengths_of(op.inputs.front());
  for (const Index other : op.inputs) {
    error_if(lengths_of(other) != op.lengths_in, "its inputs have other lengths where records have padding");
  }
  if (!op.out.sequence) return;
  for (const Index length : op.lengths_in) op.lengths_out.push_back(op.layer->length_of_output(length));
}

std::unique_ptr<Layer> join_members(Link link) {
  return std::make_unique<JoinedMembers>(link);
}

}  // namespace lockstep
