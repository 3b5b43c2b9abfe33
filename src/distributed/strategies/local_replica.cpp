#include "local_replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/math/kernels.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

class PerReplicaReducer final : public Reducer {
 public:
  PerReplicaReducer(const AlgorithmContext& context, const DistOptions& options)
      : plan_(context.plan),
        reduction_(options.reduction),
        hosted_(plan_.hosted_by(context.comm.rank())),
        reducer_(make_exchange(context, options)) {}

  std::span<Scalar> shared_arena() override {
    const std::span<Scalar> arena = reducer_->shared_arena();
    if (spare_.empty()) spare_ = arena;
    return arena;
  }
  std::string algorithm() const override { return reducer_->algorithm(); }

  void begin_step(std::span<const Index> samples) override { reducer_->begin_step(samples); }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    const MergePlan plan = plan_sums(partial.subtrees);
    std::vector<std::span<Scalar>> slices;
    for (const std::span<Scalar> piece : partial.sums) slices.push_back(part(piece, bucket.range));
    apply_merges(plan.merges, slices);
    sums_ = {.subtrees = plan.subtrees, .sums = {}};
    for (const Index survivor : plan.survivors) {
      sums_.sums.push_back(at(partial.sums, survivor));
    }
    if (sums_.sums.empty() && reduction_ == Reduction::kNative) sums_ = nothing(bucket.range);
    reducer_->bucket_ready(bucket, sums_);
  }

  void add_saved(SavedState& state) override { reducer_->add_saved(state); }
  std::size_t progress() override { return reducer_->progress(); }
  std::span<Scalar> sum() override { return reducer_->sum(); }
  std::span<Scalar> finish() override { return reducer_->finish(); }

 private:
  MergePlan plan_sums(std::span<const Range> pieces) const {
    if (reduction_ == Reduction::kOrdered) {
      return plan_merges(pieces, complete_subtrees(plan_.replicas, hosted_));
    }
    MergePlan all;
    if (pieces.empty()) return all;
    for (Index piece = 1; piece < std::ssize(pieces); ++piece) all.merges.push_back({0, piece});
    all.survivors = {0};
    all.subtrees = {hosted_};
    return all;
  }

  // No replica here has a piece: with native reduction the others still expect a contribution.
  PartialGrads nothing(Range range) {
    if (spare_.empty()) {
      zeros_ = AlignedBuffer<Scalar>(plan_.gradient_size);
      spare_ = zeros_.span();
    }
    std::ranges::fill(part(spare_, range), Scalar{0});
    return {.subtrees = {hosted_}, .sums = {spare_}};
  }

  const Plan& plan_;
  Reduction reduction_;
  Range hosted_;
  std::unique_ptr<Reducer> reducer_;
  PartialGrads sums_;
  AlignedBuffer<Scalar> zeros_;
  std::span<Scalar> spare_;  // an arena that is free where there is no piece
};

}  // namespace

LocalReplica::LocalReplica(Index replica, const Layout& layout, const Optimizer& optimizer,
                           const UpdateRules& rules, ThreadTeam& team)
    : number(replica), weights(layout.size), update(layout, optimizer, rules, &team), layout_(&layout) {}

void LocalReplica::step(std::span<Scalar> sum, const UpdateRequest& request) {
  if (take_full_update(update, weights.span(), sum, request).applied) return;
  bad_step = request.step;
  bad_number = fmt::format("step {}: replica {}: {}", request.step, number,
                           describe_bad_sum(*layout_, sum, request.weight));
}

void LocalReplica::add_saved(SavedState& state, bool without_weights) {
  const std::string prefix = fmt::format("replica.{}.", number);
  const Range all{0, layout_->size};
  update.add_saved(state, all, prefix);
  if (without_weights) return;
  state.push_back({.array = prefix + "weights",
                   .size = all.end,
                   .range = all,
                   .memory = as_buffer(weights.span()),
                   .written = all});
}

BlockMomentum::BlockMomentum(const DistOptions& options, Index size)
    : momentum_(static_cast<Scalar>(options.block_momentum)),
      lr_(static_cast<Scalar>(options.block_lr)),
      nesterov_(options.block_nesterov),
      last_(size),
      velocity_(size) {}

void BlockMomentum::start(std::span<const Scalar> weights) {
  std::ranges::copy(weights, last_.data());
}

void BlockMomentum::add_saved(SavedState& state, int rank) {
  state.push_back(saved_by_first(rank, "block.last", last_.span()));
  state.push_back(saved_by_first(rank, "block.velocity", velocity_.span()));
}

std::vector<NamedSpan> BlockMomentum::named_parts() {
  return {{"what the block started from", last_.span()}, {"block momentum", velocity_.span()}};
}

// With Nesterov's momentum a block starts where the velocity would lead if nothing were learned in it: both
// forms of the paper as changes of what blocks start from.
void BlockMomentum::apply(std::span<Scalar> average) {
  Scalar* const last = last_.data();
  Scalar* const velocity = velocity_.data();
  for (std::size_t i = 0; i < average.size(); ++i) {
    const Scalar change = lr_ * (average[i] - last[i]);
    velocity[i] = momentum_ * velocity[i] + change;
    last[i] += nesterov_ ? momentum_ * velocity[i] + change : velocity[i];
    average[i] = last[i];
  }
}

std::unique_ptr<Reducer> make_per_replica_reducer(const AlgorithmContext& context,
                                                  const DistOptions& options) {
  return std::make_unique<PerReplicaReducer>(context, options);
}

}  // namespace lockstep
