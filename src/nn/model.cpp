#include "lockstep/nn/model.h"

#include <atomic>
#include <limits>
#include <unordered_set>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/stages.h"
#include "model_builder.h"

namespace lockstep {
namespace {

constexpr Index kAllOps = std::numeric_limits<Index>::max();

// Stands for a tensor of an earlier stage.
class ReceivedTensor final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape>, ParamDeclarer&) override { return {}; }
  void forward(const ForwardArgs&) const override {}
  void backward(const BackwardArgs&) const override {}
};

// Whether somebody needs the output of `number` as it is, once the only op that takes it has run.
bool is_needed(const std::vector<ModelOp>& ops, const std::vector<Index>& takers, Index number) {
  for (Index i = number; i != kModelInput;) {
    const auto at = static_cast<std::size_t>(i);
    if (takers[at] > 1) return true;
    if (!ops[at].only_reshapes) return ops[at].reads_output;
    i = ops[at].inputs.front();
  }
  return true;
}

// `sent`: ops whose outputs a later stage takes.
std::vector<Index> owners_of(const std::vector<ModelOp>& ops, std::span<const Index> sent) {
  std::vector<Index> takers(ops.size(), 0);
  for (const Index number : sent) ++at(takers, number);
  for (const ModelOp& op : ops) {
    for (const Index input : op.inputs) {
      if (input != kModelInput) ++at(takers, input);
    }
  }
  std::vector<Index> owners;
  for (const ModelOp& op : ops) {
    const Index below = op.received ? kModelInput : op.inputs.front();
    const bool shares = op.only_reshapes || (op.in_place && !is_needed(ops, takers, below));
    if (!shares) {
      owners.push_back(std::ssize(owners));
    } else {
      owners.push_back(below == kModelInput ? kModelInput : at(owners, below));
    }
  }
  return owners;
}

// Rows of an image have the shape of members: what counts is the layer that they come from.
void check_ensemble(const ModelBuilder& builder) {
  const std::vector<ModelOp>& ops = builder.nodes();
  std::vector<bool> gives_members;  // for each op
  for (const ModelOp& op : ops) {
    const EnsemblePart part = op.ensemble_part;
    const bool takes_members = std::ranges::any_of(
        op.inputs, [&](Index input) { return input != kModelInput && at(gives_members, input); });
    const bool begins = part == EnsemblePart::kBegin;
    if (part != EnsemblePart::kNone && !begins && !takes_members)
      throw builder.error(op.path, op.text, kNoMembers);
    if (part == EnsemblePart::kEnd && &op != &ops.back())
      throw builder.error(op.path, op.text, "it ends an ensemble, so it has to be the last layer");
    gives_members.push_back(begins || (takes_members && op.out.dims.size() == 2));
  }
}

// How many an ensemble has; 1 without one.
Index count_members(const ModelBuilder& builder) {
  check_ensemble(builder);
  const ModelOp& last = builder.nodes().back();
  return last.ensemble_part == EnsemblePart::kEnd ? last.out.dims.front() : 1;
}

struct BuiltOps {
  std::vector<ModelOp> ops;
  Index members = 1;
};

BuiltOps build(const ModelOptions& options, ModelBuilder& builder, Link link) {
  const WindowScaling& scaling = options.window_scaling;
  const bool scales = scaling.kind != WindowScaling::Kind::kNone;
  Index last = kModelInput;
  if (scales) last = builder.add_layer(scale_windows(scaling), {last}, "past", "window_scale");
  last = builder.add_chain(parse_layers(model_text(options)), last, "");
  const Index members = count_members(builder);
  if (scales) {
    last = builder.add_layer(unscale_windows(scaling, members), {last, kModelInput}, "forecast",
                             "window_unscale");
  }
  if (members > 1) builder.add_layer(join_members(link), {last}, "members", "mean of members");
  return {.ops = builder.take_nodes(), .members = members};
}

Layout both(const Layout& weights, const Layout& state) {
  Layout all = weights;
  for (const ParamInfo& param : state.params) append(all, param);
  return all;
}

// Versions are unique in this process, so that no two arenas share one.
std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Model::Model(const ModelOptions& options, const Shape& input, Link link)
    : input_(input), precision_(options.precision), link_(link) {
  const Range all_ops{0, kAllOps};
  ModelBuilder builder(options, input, std::span<const Range>(&all_ops, 1));
  BuiltOps built = build(options, builder, link);
  ops_ = std::move(built.ops);
  members_ = built.members;
  owners_ = owners_of(ops_, {});
  layout_ = builder.weights();
  state_layout_ = builder.state();
  if (layout_.params.empty()) throw ConfigError("model.layers has no weights to train; add a dense layer");
  stored_layout_ = both(layout_, state_layout_);
  stage_ = {0, std::ssize(ops_)};
  weights_ = {0, layout_.size};
  state_ = {0, state_layout_.size};
}

Model::Model(const ModelOptions& options, const Model& whole, std::span<const Range> parts)
    : Model(options, whole, parts, parts) {
  if (parts.size() == 1) return;
  for (const Range& ops : parts) {
    std::unique_ptr<Model> chunk(new Model(options, whole, parts, std::span<const Range>(&ops, 1)));
    const std::size_t first = static_cast<std::size_t>(chunk->received_.end);
    chunk->weights_ = {chunk->ops_[first].params.begin, chunk->ops_.back().params.end};
    chunk->state_ = {chunk->ops_[first].state.begin, chunk->ops_.back().state.end};
    chunk->layout_ = layout_;
    chunk->state_layout_ = state_layout_;
    chunk->stored_layout_ = stored_layout_;
    chunks_.push_back(std::move(chunk));
  }
}

// The ops `run` of the model, with layouts of the tensors of the ops `kept`.
Model::Model(const ModelOptions& options, const Model& whole, std::span<const Range> kept,
             std::span<const Range> run)
    : input_(whole.input_),
      precision_(options.precision),
      link_(whole.link_),
      members_(run.back().end == std::ssize(whole.ops_) ? whole.members_ : 1),
      whole_(&whole) {
  ModelBuilder builder(options, whole.input_, kept);
  std::vector<ModelOp> all = build(options, builder, link_).ops;
  for (const Range& part : run) add_part(part, all);
  owners_ = owners_of(ops_, sent_);
  layout_ = builder.weights();
  state_layout_ = builder.state();
  borrowed_ = builder.borrowed();
  number_layers(layout_, run);
  number_layers(state_layout_, run);
  // The output layer is that of the last matrix of the whole model.
  const std::vector<ParamInfo>& params = whole.layout_.params;
  const auto last = std::find_if(params.rbegin(), params.rend(), [](const ParamInfo& param) {
    return param.decays && param.shape.dims.size() > 1;
  });
  layout_.has_output = last == params.rend() ||
                       std::ranges::any_of(kept, [&](const Range& ops) { return ops.contains(last->layer); });
  stored_layout_ = both(layout_, state_layout_);
  weights_ = {0, layout_.size};
  state_ = {0, state_layout_.size};
}

// Takes the ops of a part, behind an op for each tensor that it receives.
void Model::add_part(Range part, std::vector<ModelOp>& all) {
  stage_ = part;
  received_ = {std::ssize(ops_), std::ssize(ops_)};
  std::vector<Index> from;  // of each received tensor, the op of the whole model
  for (const CrossingTensor& tensor : crossing_tensors(*whole_, part.begin)) {
    from.push_back(tensor.owner);
    ModelOp& op = ops_.emplace_back();
    op.title = whole_->op(tensor.last).title;
    op.layer = std::make_unique<ReceivedTensor>();
    op.out = whole_->op(tensor.last).out;
    op.received = true;
  }
  received_.end = std::ssize(ops_);
  numbers_.insert(numbers_.end(), from.begin(), from.end());
  const Index shift = received_.end - part.begin;
  // The op here for an op of the whole model.
  const auto local = [&](Index number) {
    if (number == kModelInput) return kModelInput;
    if (number >= part.begin) return number + shift;
    const Index owner = at(whole_->owners_, number);
    if (owner == kModelInput) return kModelInput;
    return received_.begin + (std::ranges::find(from, owner) - from.begin());
  };
  for (Index i = part.begin; i < part.end; ++i) {
    ModelOp& op = ops_.emplace_back(std::move(at(all, i)));
    std::ranges::transform(op.inputs, op.inputs.begin(), local);
    numbers_.push_back(i);
  }
  for (const CrossingTensor& tensor : crossing_tensors(*whole_, part.end)) {
    sent_.push_back(local(tensor.last));
  }
}

// The owners of tensors get the numbers that ops have here, in the layout of the tensors of `parts`.
void Model::number_layers(Layout& layout, std::span<const Range> parts) const {
  std::size_t param = 0;
  for (const Range& stage : parts) {
    if (stage.begin != parts.front().begin) layout.chunk_begins.push_back(param);
    for (; param < layout.params.size() && layout.params[param].layer < stage.end; ++param) {
      Index& layer = layout.params[param].layer;
      Index op = 0;
      while (op < std::ssize(ops_) && (at(ops_, op).received || at(numbers_, op) != layer)) ++op;
      layer = op;
    }
  }
}

Index Model::first_op_of_chunk(Index number) const {
  Index first = 0;
  for (Index i = 0; i < number; ++i) first += std::ssize(chunk(i).ops());
  return first;
}

std::vector<Index> Model::sync_points(Index replicas) const {
  std::vector<Index> points;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const BatchStatistics* statistics = ops_[i].layer->statistics();
    if (statistics != nullptr && statistics->mode().normalised_with(0, replicas).size() > 1) {
      points.push_back(static_cast<Index>(i));
    }
  }
  return points;
}

std::vector<FactoredTensor> Model::factored_tensors() const {
  std::vector<FactoredTensor> tensors;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const ModelOp& op = ops_[i];
    const Range range = op.weight_use.factored;
    if (range.empty() || op.shares) continue;
    tensors.push_back({static_cast<Index>(i), range, op.out.size(), op.in.front().size()});
  }
  return tensors;
}

Index Model::training_flops() const {
  Index total = 0;
  for (const ModelOp& op : ops_) total += 3 * op.flops;
  return total;
}

ModelValues stored_values(const Model& model, std::span<const Scalar> stored) {
  const Index weights = model.layout().size;
  return {.weights = part(stored, {0, weights}),
          .state = part(stored, {weights, weights + model.state_layout().size})};
}

TiedWeight tied_weight(const ModelOp& op, const ModelValues& values) {
  if (!op.tie) return {};
  const std::span<const Bf16> rounded = op.tie->borrowed ? values.borrowed_rounded : values.rounded;
  return {.exact = part(op.tie->borrowed ? values.borrowed : values.weights, op.tie->weight),
          .rounded = rounded.empty() ? rounded : part(rounded, op.tie->weight)};
}

KernelWeights::KernelWeights(const Model& model) {
  const auto take = [&](bool borrowed, Index size) {
    Rounding rounding;
    std::unordered_set<Index> begins;
    for (const ModelOp& op : model.ops()) {
      const Range tensor = op.weight_use.rounded;
      if (tensor.empty() || (op.tie && op.tie->borrowed) != borrowed) continue;
      // Layers that share a weight name the same range.
      if (begins.insert(tensor.begin).second) rounding.tensors.push_back(tensor);
    }
    if (!rounding.tensors.empty()) rounding.rounded = AlignedBuffer<Bf16>(size);
    return rounding;
  };
  own_ = take(false, model.layout().size);
  borrowed_ = take(true, model.borrowed().size);
}

// Empty if nothing is rounded.
std::span<const Bf16> KernelWeights::Rounding::round(std::span<const Scalar> weights, ThreadTeam& team) {
  if (tensors.empty()) return {};
  team.run([&](int thread) {
    for (const Range& tensor : tensors) {
      const Range range = split_evenly(tensor, team.size(), thread, kAlignment);
      round_to_bf16(part(weights, range), part(rounded.span(), range));
    }
  });
  return rounded.span();
}

ModelValues KernelWeights::prepare(const ModelValues& values, ThreadTeam& team) {
  ModelValues prepared = values;
  prepared.version = next_version();
  prepared.rounded = own_.round(values.weights, team);
  prepared.borrowed_rounded = borrowed_.round(values.borrowed, team);
  return prepared;
}

}  // namespace lockstep
