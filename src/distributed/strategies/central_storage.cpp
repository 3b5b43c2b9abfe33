// One copy of the weights and of the optimizer state per node, in memory that its ranks share. Every rank
// reads that copy and leaves its gradients in the same memory; each then adds its own slice over all replicas
// and takes the optimizer step on it, in place. Between nodes a slice is added among those who own it; on one
// node the sum and the step are one pass through memory, which each rank's word that its own gradients are
// good numbers allows, and the gradients of large dense layers are never written: see FactoredGradients.
#include <algorithm>
#include <array>
#include <cmath>

#include "distributed/exchange/node_gradients.h"
#include "lockstep/base/timer.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/sample_weights.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

// One slice of the whole arena for each rank of a node: nothing is sent before all is there, since memory is
// faster than any overlap with it. Of a tensor that is left as factors each has its share, since to multiply
// takes longer than to add; but a tensor has one owner if the optimizer needs it whole.
NodeRequest lay_out_memory(const StrategyContext& context, bool one_node) {
  const Grain grain = context.optimizer.needs_whole_tensors() ? Grain::kTensor : Grain::kBlock;
  const Range whole{0, context.plan.gradient_size};
  std::vector<Bucket> buckets;
  if (one_node && grain == Grain::kBlock) {
    for (const FactoredTensor& tensor : context.plan.factored) buckets.push_back({.range = tensor.range});
    for_each_outside(context.plan.factored, whole, [&](Range range) { buckets.push_back({.range = range}); });
    std::ranges::sort(buckets, {}, [](const Bucket& bucket) { return bucket.range.begin; });
  } else {
    buckets.push_back({.range = whole});
  }
  return {.user = "strategy central_storage",
          .buckets = buckets,
          .cut = [grid = BlockGrid(context.layout, grain)](
                     Range range, Index parts) { return owner_slices(grid, range, parts); },
          .keeps_weights = true,
          .shared_size = one_node ? FactoredGradients::shared_size(context.plan) : 0};
}

// Adds the sums of a node's ranks, and multiplies its factors, as the step goes on.
class NodeSum final : public SumSource {
 public:
  NodeSum(NodeGradients& gradients, FactoredGradients& factors, int threads)
      : gradients_(gradients), factors_(factors), blocks_(static_cast<std::size_t>(threads)) {}

  Index part_end(Index offset) const override {
    return factors_.contains(offset) ? factors_.part_end(offset) : offset + kStepBlock;
  }

  std::span<Scalar> sum(int thread, Range range) override {
    if (factors_.contains(range.begin)) return factors_.product(thread, range);
    const std::span<Scalar> memory(at(blocks_, thread).values);
    return gradients_.sum(range, part(memory, {0, range.size()}));
  }

 private:
  struct alignas(kAlignmentBytes) Block {
    std::array<Scalar, kStepBlock> values;
  };

  NodeGradients& gradients_;
  FactoredGradients& factors_;
  std::vector<Block> blocks_;  // one for each thread
};

class CentralStorage final : public SynchronousStrategy {
 public:
  explicit CentralStorage(const StrategyContext& context)
      : comm_(context.comm),
        plan_(context.plan),
        one_node_(look_at_nodes(comm_, context.ranks_per_node).count == 1),
        gradients_(context.exchange(), lay_out_memory(context, one_node_)),
        factors_(plan_, gradients_.shared()),
        sum_(gradients_, factors_, context.team.size()),
        weights_(gradients_.weights()),
        across_reducer_(make_reducer(
            {.comm = gradients_.across(), .plan = gradients_.layout().across, .options = context.options})),
        update_(
            context.layout, context.optimizer, context.rules, owned_weights(),
            [this](std::span<double> sums) { gradients_.node().all_reduce_sum(as_buffer(sums)); },
            &context.team) {}

  std::span<Scalar> weights(Index) override { return weights_; }
  std::span<const Scalar> gather_model() override { return weights_; }
  std::span<Scalar> gradient_arena() override { return gradients_.arena(); }

  void start() override {
    if (gradients_.node().rank() == 0) gradients_.across().broadcast(as_buffer(weights_), 0);
    gradients_.fence();
  }

  SavedState saved_state() override {
    SavedState state;
    update_.add_saved(state, gradients_.across().rank() == 0 ? Range{0, plan_.loss_offset} : Range{});
    across_reducer_->add_saved(state);
    return state;
  }

  FactoredGradients* factored_gradients() override { return one_node_ ? &factors_ : nullptr; }

  void begin_step(std::span<const Index> samples, double weight) override {
    across_reducer_->begin_step(samples);
    gradients_.begin_step(samples);
    // Each replica may have its even share of what the sum may be.
    factors_.begin_step(samples, max_sum(weight) / static_cast<Scalar>(samples.size()));
  }

  void bucket_ready(const Bucket&, const PartialGrads& partial) override { partial_ = &partial; }
  std::size_t progress() override { return 0; }
  bool overlaps() const override { return false; }

  void finish_exchange() override {
    gradients_.post_status(*partial_, factors_.good());
    gradients_.fence();
    if (one_node_) {
      gradient_ = gradients_.collect().sums.front();
      return;
    }
    if (slice().empty()) return;
    const PartialGrads& node_sums = gradients_.collect();
    gradients_.add(slice());
    across_reducer_->bucket_ready(gradients_.layout().across.buckets.front(), node_sums);
    gradient_ = across_reducer_->finish();
  }

  StepOutcome update(const UpdateRequest& request) override {
    return one_node_ ? update_node(request) : update_between_nodes(request);
  }

  // A node has one copy; each slice of it is compared with those of the other nodes.
  ReplicatedState replicated() override {
    if (one_node_) return {};
    return {&gradients_.across(), update_.named_parts(weights_)};
  }
  void changed_replicated() override { gradients_.fence(); }

 private:
  // All ranks find the same in the node's memory.
  StepOutcome update_node(const UpdateRequest& request) {
    auto loss = static_cast<double>(gradients_.sum_at(plan_.loss_offset));
    bool good = gradients_.all_good() && std::isfinite(loss);
    update_.agree_over_stages(good, loss);
    StepOutcome outcome{.applied = good, .mean_loss = mean_of(loss, request.weight)};
    if (!outcome.applied) return outcome;
    update_.step(weights_, gradient_, request, &sum_);
    outcome.product_seconds = factors_.seconds();
    finish_step(outcome);
    return outcome;
  }

  StepOutcome update_between_nodes(const UpdateRequest& request) {
    const bool tells_loss = gradients_.across().rank() == 0 && slice().contains(plan_.loss_offset);
    StepOutcome outcome = take_owned_update(comm_, update_, weights_, gradient_, tells_loss, request);
    if (outcome.applied) finish_step(outcome);
    return outcome;
  }

  void finish_step(StepOutcome& outcome) {
    const Stopwatch waiting;
    gradients_.fence();
    outcome.exchange_seconds += waiting.seconds();
  }

  // The only one, where there are several nodes.
  Range slice() const { return gradients_.layout().slices.front(); }

  std::vector<Range> owned_weights() const {
    std::vector<Range> owned;
    for (const Range slice : gradients_.layout().slices) {
      const Range mine = intersect(slice, {0, plan_.loss_offset});
      if (!mine.empty()) owned.push_back(mine);
    }
    return owned;
  }

  Communicator& comm_;
  const Plan& plan_;
  const bool one_node_;
  NodeGradients gradients_;
  FactoredGradients factors_;
  NodeSum sum_;
  std::span<Scalar> weights_;
  std::unique_ptr<Reducer> across_reducer_;
  ParameterUpdate update_;
  const PartialGrads* partial_ = nullptr;
  std::span<Scalar> gradient_;
};

// The first rank's part holds the factors of all. Arenas whose parts nobody touches are memory all the same.
Index factor_bytes(const Plan& plan, Index rank) {
  const Index shared = rank == 0 ? FactoredGradients::shared_size(plan) : 0;
  return (shared + plan.threads * FactoredGradients::own_size(plan)) * Index{sizeof(Scalar)};
}

std::vector<RankCosts> central_storage_costs(const CostModelInput& question) {
  const Plan& plan = question.plan;
  const std::vector<Index> nodes = question.nodes();
  const Index owners = owners_on_node(nodes);
  const Plan across = plan_across(plan, nodes);
  const ExchangeCosts exchange(across, question.options, Delivery::kAllReduce);
  return each_rank(question, [&](Index rank) {
    const RankOnNode position = find_on_node(nodes, rank);
    RankCosts costs{
        .weights = position.rank == 0 ? question.weights_bytes() : 0,
        .gradients = question.gradient_bytes(rank) + (nodes.size() == 1 ? factor_bytes(plan, rank) : 0)};
    costs.stepped = 1 / static_cast<double>(owners);
    if (position.rank >= owners) return costs;
    costs.optimizer = question.optimizer.share_bytes(plan.loss_offset, position.rank, owners, plan.threads);
    const AlgorithmCosts between = exchange.of(position.node);
    costs.gradients += between.held;
    costs.sent = static_cast<double>(between.sent);
    return costs;
  });
}

}  // namespace

StrategyEntry central_storage_entry() {
  return {.name = "central_storage",
          .help =
              "the ranks of a node share one copy of the weights and of the optimizer state; each adds its "
              "slice of the gradients and takes the step on it in place",
          .elsewhere = "CentralStorageStrategy",
          .choose =
              "the default on one node; elsewhere with several ranks per node: less memory, and no message "
              "inside a node",
          .promises = {.same_bits = true,
                       .identical_replicas = true,
                       .one_copy_per_node = true,
                       .exact_resume = true},
          .costs = central_storage_costs,
          .make = [](const StrategyContext& context) { return std::make_unique<CentralStorage>(context); }};
}

}  // namespace lockstep
