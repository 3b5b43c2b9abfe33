// The algorithms `shared` and `hierarchical`: gradients lie in memory that the ranks of a node share.
//
// Each bucket is cut into a slice for each rank of a node. A rank that hands in a bucket counts it in shared
// memory. Once all ranks of the node have, each adds its own slice of their partial sums; with several nodes
// it exchanges the result with those who own the slice there. Then it writes the sum into the arenas of all
// ranks of the node and counts that; a rank for whom all have done that has the whole bucket in its own
// arena.
//
// Ranks handle buckets in order, so for each of them two counts suffice: buckets handed in, and buckets whose
// slice is done. They only grow, from step to step too. A rank that has finished a step knows that nobody
// looks at its arenas any more, so it may begin the next one without another synchronisation.
//
// Between nodes messages go in pairs and nothing is collective: a rank comes to a bucket's second half at a
// moment of its own, before or after something else that all ranks do together.
#include <fmt/format.h>

#include <algorithm>

#include "distributed/exchange/node_gradients.h"
#include "distributed/exchange/reducers.h"
#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

// Sums are written to all ranks while they are in the cache.
constexpr Index kBlock = 4096;

std::vector<Range> cut_evenly(Range range, Index parts) {
  std::vector<Range> slices;
  for (Index i = 0; i < parts; ++i) slices.push_back(split_evenly(range, parts, i, kAlignment));
  return slices;
}

class NodeReducer final : public Reducer {
 public:
  // `user`: see NodeRequest.
  NodeReducer(const ExchangeRequest& request, const std::string& user)
      : gradients_(request, {.user = user, .buckets = request.plan.buckets, .cut = cut_evenly}),
        slices_(gradients_.layout().slices),
        across_(make_across(request.options)) {}

  std::span<Scalar> shared_arena() override { return gradients_.arena(); }

  void begin_step(std::span<const Index> samples) override {
    gradients_.begin_step(samples);
    if (across_) across_->begin_step(samples);
    before_ += static_cast<Index>(started_);
    started_ = added_ = done_ = complete_ = 0;
  }

  void bucket_ready(const Bucket&, const PartialGrads& partial) override {
    if (started_ == 0) gradients_.post_status(partial);
    ++started_;
    gradients_.ready(rank()).store(count_of(started_), std::memory_order_release);
    progress();
  }

  std::size_t progress() override {
    while (added_ < started_ && all_have(&NodeGradients::ready, added_ + 1)) add_slice(added_++);
    if (across_) finish_slices(across_->progress());
    while (complete_ < started_ && all_have(&NodeGradients::done, complete_ + 1)) ++complete_;
    return complete_;
  }

  std::span<Scalar> sum() override { return gradients_.result(rank()); }

  std::span<Scalar> finish() override {
    constexpr int kSpins = 100;  // most waits are short
    for (int spin = 0; progress() < started_; ++spin) {
      if (spin % kSpins == kSpins - 1) gradients_.node().idle();
    }
    return sum();
  }

 private:
  int rank() { return gradients_.node().rank(); }
  Index count_of(std::size_t buckets) const { return before_ + static_cast<Index>(buckets); }

  std::unique_ptr<Reducer> make_across(const DistOptions& options) {
    const bool owns_nothing = std::ranges::all_of(slices_, [](Range slice) { return slice.empty(); });
    if (gradients_.across().size() == 1 || owns_nothing) return nullptr;
    const Plan& plan = gradients_.layout().across;
    if (options.reduction == Reduction::kNative) {
      return make_staged_reducer(gradients_.across(), plan, rabenseifner_stages);
    }
    return make_owner_reducer({.comm = gradients_.across(), .plan = plan, .options = options});
  }

  bool all_have(std::atomic_ref<Index> (NodeGradients::*counter)(int), std::size_t buckets) {
    for (int peer = 0; peer < gradients_.node().size(); ++peer) {
      if ((gradients_.*counter)(peer).load(std::memory_order_acquire) < count_of(buckets)) return false;
    }
    return true;
  }

  void add_slice(std::size_t bucket) {
    if (bucket == 0) node_sums_ = &gradients_.collect();
    const Range slice = slices_[bucket];
    if (across_) {
      gradients_.add(slice);
      across_->bucket_ready(gradients_.layout().across.buckets[bucket], *node_sums_);
      return;
    }
    for (Index begin = slice.begin; begin < slice.end; begin += kBlock) {
      const Range block{begin, std::min(begin + kBlock, slice.end)};
      gradients_.add(block);
      hand_out(node_sums_->sums.front(), block);
    }
    post_done(bucket + 1);
  }

  // Finishes the slices whose sums came back from the other nodes.
  void finish_slices(std::size_t exchanged) {
    if (done_ == exchanged) return;
    while (done_ < exchanged) hand_out(across_->sum(), slices_[done_++]);
    post_done(done_);
  }

  void hand_out(std::span<const Scalar> sum, Range range) {
    for (int peer = 0; peer < gradients_.node().size(); ++peer) {
      const std::span<Scalar> to = part(gradients_.result(peer), range);
      const std::span<const Scalar> from = part(sum, range);
      if (to.data() != from.data()) std::ranges::copy(from, to.begin());
    }
  }

  void post_done(std::size_t buckets) {
    gradients_.done(rank()).store(count_of(buckets), std::memory_order_release);
  }

  NodeGradients gradients_;
  std::vector<Range> slices_;        // this rank's slice of each bucket
  std::unique_ptr<Reducer> across_;  // none on one node, or without a slice
  Index before_ = 0;                 // buckets of the steps before this one
  std::size_t started_ = 0;          // buckets of this step: handed in here,
  std::size_t added_ = 0;            // added over the node,
  std::size_t done_ = 0;             // back from the other nodes, where there are any,
  std::size_t complete_ = 0;         // and complete
  const PartialGrads* node_sums_ = nullptr;
};

AlgorithmCosts node_reducer_costs(const CostModelInput& question, Index rank) {
  const Plan& plan = question.plan;
  const Reduction reduction = question.options.reduction;
  const std::vector<Index> nodes = question.nodes();
  const RankOnNode position = find_on_node(nodes, rank);
  AlgorithmCosts costs{.held = NodeGradients::header_bytes()};
  if (position.rank < owners_on_node(nodes)) {
    const Plan across = plan_across(plan, nodes);  // of one bucket
    const AlgorithmCosts between =
        across.world > 1 && reduction == Reduction::kNative
            ? staged_costs(across, position.node, rabenseifner_stages)
            : ExchangeCosts(across, question.options, Delivery::kAllReduce).of(position.node);
    costs.held += between.held;
    costs.sent = between.sent;
  }
  return costs;
}

AlgorithmEntry node_entry(const std::string& name, const std::string& help,
                          const std::function<std::string(const Nodes&)>& refusal) {
  return {
      .name = name,
      .help = help,
      .keeps_order = true,
      .in_node_memory = true,
      .refusal = refusal,
      .make = [user = "distribute.algorithm " + name](
                  const ExchangeRequest& request) { return std::make_unique<NodeReducer>(request, user); },
      .costs = node_reducer_costs};
}

}  // namespace

// All ranks of the job are on one node: no message is sent.
AlgorithmEntry shared_entry() {
  return node_entry(
      "shared",
      "the gradients lie in memory that all ranks share; each rank adds a slice of them and puts the "
      "sums where the others look for them: no message at all, one node only",
      [](const Nodes& nodes) {
        if (nodes.count == 1) return std::string();
        return fmt::format("the ranks are on {} nodes, which share no memory: use hierarchical, or auto",
                           nodes.count);
      });
}

// Two levels: each number leaves a node once, and not once for each rank.
AlgorithmEntry hierarchical_entry() {
  return node_entry(
      "hierarchical",
      "as shared inside each node; between nodes each rank exchanges its slice with those who own it "
      "there, so a node sends no more than one rank would",
      [](const Nodes& nodes) {
        if (nodes.largest > 1) return std::string();
        return std::string("no two ranks share a node: use mpi, ring, rabenseifner or auto");
      });
}

}  // namespace lockstep
