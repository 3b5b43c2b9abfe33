#include "lockstep/nn/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "joined_members.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/ensemble.h"
#include "lockstep/nn/preset.h"
#include "lockstep/nn/stages.h"
#include "model_builder.h"

namespace lockstep {
namespace {

constexpr Index kAllOps = std::numeric_limits<Index>::max();

// Stands for a tensor of an earlier stage.
class ReceivedTensor final : public Layer {
 public:
  Shape declare(std::span<const Shape>, ParamDeclarer&) override { return {}; }
  void forward(const ForwardArgs&) const override {}
  void backward(const BackwardArgs&) const override {}
  Operation operation() const override { return {.name = "received"}; }
};

// Whether somebody needs the output of `number` as it is, once the only op that takes it has run.
bool is_needed(const std::vector<ModelOp>& ops, const std::vector<Index>& takers, Index number) {
  for (Index i = number; i != kModelInput;) {
    const auto at = static_cast<std::size_t>(i);
    if (takers[at] > 1) return true;
    if (!ops[at].layer->only_reshapes()) return ops[at].layer->reads_output();
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
    const bool shares = op.layer->only_reshapes() || (op.layer->in_place() && !is_needed(ops, takers, below));
    if (!shares) {
      owners.push_back(std::ssize(owners));
    } else {
      owners.push_back(below == kModelInput ? kModelInput : at(owners, below));
    }
  }
  return owners;
}

// Members whose outputs stand side by side in that of the op; 0 unless it ends an ensemble.
Index members_in(const ModelOp& op) {
  const auto* const end = dynamic_cast<const EnsembleEnd*>(op.layer.get());
  return end == nullptr ? 0 : end->members();
}

// Ends an ensemble with the op that joins its members; gives how many there are, 1 without one.
Index join_ensemble(ModelBuilder& builder, Link link) {
  const std::vector<ModelOp>& ops = builder.nodes();
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    if (members_in(ops[i]) == 0) continue;
    throw builder.error(ops[i].path, ops[i].text, "it ends an ensemble, so it has to be the last layer");
  }
  const Index members = members_in(ops.back());
  if (members == 0) return 1;
  builder.add_layer(join_members(link), {std::ssize(ops) - 1}, "members", "mean of members");
  return members;
}

struct BuiltOps {
  std::vector<ModelOp> ops;
  Index members = 1;
};

BuiltOps build(const ModelOptions& options, ModelBuilder& builder, Link link) {
  builder.add_chain(parse_terms(model_text(options), {.composites = catalog_names(composite_catalog())}),
                    kModelInput, "");
  const Index members = join_ensemble(builder, link);
  return {.ops = builder.take_nodes(), .members = members};
}

Layout both(const Layout& weights, const Layout& state) {
  Layout all = weights;
  for (const ParamInfo& param : state.params) append(all, param);
  return all;
}

}  // namespace

Model::Model(const ModelOptions& options, const Shape& input) : Model(options, input, Link::kIdentity) {}

Model::Model(const ModelOptions& options, const Shape& input, Link link)
    : input_(input), precision_(options.precision), link_(link) {
  ModelBuilder builder(options, input, {0, kAllOps});
  BuiltOps built = build(options, builder, link);
  ops_ = std::move(built.ops);
  members_ = built.members;
  owners_ = owners_of(ops_, {});
  layout_ = builder.weights();
  state_layout_ = builder.state();
  if (layout_.params.empty()) throw ConfigError("model.layers has no weights to train; add a dense layer");
  stored_layout_ = both(layout_, state_layout_);
  stage_ = {0, std::ssize(ops_)};
}

Model::Model(const ModelOptions& options, const Model& whole, Range stage)
    : input_(whole.input_),
      precision_(options.precision),
      link_(whole.link_),
      members_(stage.end == std::ssize(whole.ops_) ? whole.members_ : 1),
      whole_(&whole),
      stage_(stage) {
  ModelBuilder builder(options, whole.input_, stage);
  std::vector<ModelOp> all = build(options, builder, link_).ops;
  for (const CrossingTensor& tensor : crossing_tensors(whole, stage.begin)) {
    from_.push_back(tensor.owner);
    ModelOp& op = ops_.emplace_back();
    op.title = whole.op(tensor.last).title;
    op.layer = std::make_unique<ReceivedTensor>();
    op.out = whole.op(tensor.last).out;
    op.received = true;
  }
  const Index shift = std::ssize(from_) - stage.begin;
  // The op here for an op of the whole model.
  const auto local = [&](Index number) {
    if (number == kModelInput) return kModelInput;
    if (number >= stage.begin) return number + shift;
    const Index owner = at(whole.owners_, number);
    return owner == kModelInput ? kModelInput : std::ranges::find(from_, owner) - from_.begin();
  };
  for (Index i = stage.begin; i < stage.end; ++i) {
    ModelOp& op = ops_.emplace_back(std::move(at(all, i)));
    std::ranges::transform(op.inputs, op.inputs.begin(), local);
  }
  for (const CrossingTensor& tensor : crossing_tensors(whole, stage.end)) sent_.push_back(local(tensor.last));
  owners_ = owners_of(ops_, sent_);
  layout_ = builder.weights();
  state_layout_ = builder.state();
  for (Layout* layout : {&layout_, &state_layout_}) {
    for (ParamInfo& param : layout->params) param.layer += shift;
  }
  layout_.has_output = std::ranges::none_of(whole.layout_.params, [&](const ParamInfo& param) {
    return param.layer >= stage.end && param.decays && param.shape.dims.size() > 1;
  });
  stored_layout_ = both(layout_, state_layout_);
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
    const Range range = op.layer->weight_use().factored;
    if (range.empty() || op.shares) continue;
    tensors.push_back({static_cast<Index>(i), range, op.out.size(), op.in.front().size()});
  }
  return tensors;
}

Index Model::training_flops() const {
  Index total = 0;
  for (const ModelOp& op : ops_) total += 3 * op.layer->flops();
  return total;
}

ModelValues stored_values(const Model& model, std::span<const Scalar> stored) {
  const Index weights = model.layout().size;
  return {.weights = part(stored, {0, weights}),
          .state = part(stored, {weights, weights + model.state_layout().size})};
}

double Operation::attribute(std::string_view key) const {
  return std::ranges::find(attributes, key, &std::pair<std::string, double>::first)->second;
}

}  // namespace lockstep
