#include "lockstep/nn/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "joined_members.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/ensemble.h"
#include "lockstep/nn/preset.h"
#include "model_builder.h"

namespace lockstep {
namespace {

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

std::vector<Index> owners_of(const std::vector<ModelOp>& ops) {
  std::vector<Index> takers(ops.size(), 0);
  for (const ModelOp& op : ops) {
    for (const Index input : op.inputs) {
      if (input != kModelInput) ++at(takers, input);
    }
  }
  std::vector<Index> owners;
  for (const ModelOp& op : ops) {
    const Index below = op.inputs.front();
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

}  // namespace

Model::Model(const ModelOptions& options, const Shape& input) : Model(options, input, Link::kIdentity) {}

Model::Model(const ModelOptions& options, const Shape& input, Link link)
    : input_(input), precision_(options.precision) {
  ModelBuilder builder(options, input);
  builder.add_chain(parse_terms(model_text(options), {.composites = catalog_names(composite_catalog())}),
                    kModelInput, "");
  members_ = join_ensemble(builder, link);
  ops_ = builder.take_nodes();
  owners_ = owners_of(ops_);
  layout_ = builder.weights();
  state_layout_ = builder.state();
  if (layout_.params.empty()) throw ConfigError("model.layers has no weights to train; add a dense layer");
  stored_layout_ = layout_;
  for (const ParamInfo& param : state_layout_.params) append(stored_layout_, param);
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
