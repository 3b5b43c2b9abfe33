// One copy of the weights and of the optimizer state per node, in memory that its ranks share. Every rank
// reads that copy and leaves its gradients in the same memory; each then adds its own slice over all replicas
// and takes the optimizer step on it, in place. Between nodes a slice is added among those who own it.
#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "agree_on_sums.h"
#include "entries.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "lockstep/dist/reducer.h"
#include "lockstep/math/fixed_tree.h"
#include "node_layout.h"

namespace lockstep {
namespace {

class CentralStorage final : public SynchronousStrategy {
 public:
  explicit CentralStorage(const StrategyContext& context)
      : comm_(context.comm),
        plan_(context.plan),
        reduction_(context.options.reduction),
        arena_bytes_(round_up(plan_.gradient_size * Index{sizeof(Scalar)}, kAlignmentBytes)),
        node_(comm_.split_by_node(context.ranks_per_node)),
        across_(comm_.split(node_->rank(), comm_.rank())),
        layout_(lay_out_node(comm_, *node_, *across_, plan_, context.layout)),
        window_(node_->shared_window(window_bytes(context))),
        weights_(scalars(0, 0, context.layout.size)),
        across_reducer_(make_reducer(*across_, layout_.across, context.options, Delivery::kToAll)),
        update_(context.layout, context.optimizer, context.rules, owned_weights(),
                [this](std::span<double> sums) { node_->all_reduce_sum(as_buffer(sums)); }) {}

  std::span<Scalar> weights(Index) override { return weights_; }
  std::span<const Scalar> settle() override { return weights_; }

  std::span<Scalar> gradient_arena(Index size) override {
    return scalars(node_->rank(), first_arena(node_->rank()) + arenas_taken_.fetch_add(1) * arena_bytes_,
                   size);
  }

  void start() override {
    if (node_->rank() == 0) across_->broadcast(as_buffer(weights_), 0);
    window_->fence();
  }

  void begin_step(std::span<const Index> samples) override {
    across_reducer_->begin_step(samples);
    samples_.assign(samples.begin(), samples.end());
  }

  // Nothing travels before all is there: memory is faster than any overlap with it.
  void bucket_ready(const Bucket&, const PartialGrads& partial) override { partial_ = &partial; }
  void progress() override {}

  void finish_exchange() override {
    leave_note();
    window_->fence();
    if (layout_.slice.empty()) return;
    add_slice();
    if (across_->size() == 1) {
      gradient_ = node_sums_.sums.front();
      return;
    }
    across_reducer_->bucket_ready(layout_.across.buckets.front(), node_sums_);
    gradient_ = across_reducer_->finish();
  }

  StepOutcome update(const UpdateRequest& request) override {
    const bool good = layout_.slice.empty() || update_.prepare(gradient_, request);
    const bool tells_loss = across_->rank() == 0 && layout_.slice.contains(plan_.loss_place);
    const double loss =
        tells_loss ? static_cast<double>(gradient_[static_cast<std::size_t>(plan_.loss_place)]) : 0.0;
    StepOutcome outcome = agree_on_sums(comm_, good, loss, request.samples);
    if (!outcome.applied) return outcome;
    update_.step(weights_, gradient_, request);
    const Stopwatch meeting;
    window_->fence();
    outcome.exchange_seconds += meeting.seconds();
    return outcome;
  }

 private:
  // A rank's part of the window: a note of where its sums are, and its arenas of gradients; before those,
  // with the first rank, the weights.
  static constexpr Index kMostSums = 128;
  struct Note {
    Index count;
    Index places[kMostSums];  // bytes in the part
  };

  Index weights_bytes() const { return arena_bytes_; }
  Index first_note(int rank) const { return rank == 0 ? weights_bytes() : 0; }
  Index first_arena(int rank) const { return first_note(rank) + round_up(sizeof(Note), kAlignmentBytes); }
  Index window_bytes(const StrategyContext& context) const {
    return first_arena(node_->rank()) + context.gradient_arenas * arena_bytes_;
  }

  std::span<Scalar> scalars(int rank, Index place, Index size) {
    auto* memory = reinterpret_cast<Scalar*>(window_->part(rank).data() + place);
    return {memory, static_cast<std::size_t>(size)};
  }

  std::vector<Range> owned_weights() const {
    const Range mine = intersect(layout_.slice, {0, plan_.loss_place});
    return mine.empty() ? std::vector<Range>{} : std::vector{mine};
  }

  void leave_note() {
    const std::span<std::byte> mine = window_->part(node_->rank());
    Note note{.count = static_cast<Index>(partial_->sums.size()), .places = {}};
    if (note.count > kMostSums) {
      throw CommError(fmt::format("a rank has {} partial sums, more than {}", note.count, kMostSums));
    }
    for (std::size_t i = 0; i < partial_->sums.size(); ++i) {
      note.places[i] = reinterpret_cast<const std::byte*>(partial_->sums[i].data()) - mine.data();
    }
    std::memcpy(mine.data() + first_note(node_->rank()), &note, sizeof note);
  }

  // Adds the partial sums of the node's ranks in this rank's slice, and no further than the node's replicas
  // reach.
  void add_slice() {
    std::vector<Range> nodes;
    std::vector<std::span<Scalar>> arenas;
    std::vector<std::span<Scalar>> pieces;
    for (int rank = 0; rank < node_->size(); ++rank) {
      Note note;
      std::memcpy(&note, window_->part(rank).data() + first_note(rank), sizeof note);
      const std::vector<Range> theirs = nodes_of(layout_.hosted[static_cast<std::size_t>(rank)]);
      for (Index i = 0; i < note.count; ++i) {
        nodes.push_back(theirs[static_cast<std::size_t>(i)]);
        arenas.push_back(scalars(rank, note.places[i], plan_.gradient_size));
        pieces.push_back(part(arenas.back(), layout_.slice));
      }
    }
    node_sums_ = {};
    if (reduction_ == Reduction::kNative) {
      std::vector<Merge> merges;
      for (std::size_t i = 1; i < pieces.size(); ++i) merges.push_back({0, static_cast<Index>(i)});
      apply_merges(merges, pieces);
      node_sums_ = {.nodes = {layout_.replicas}, .sums = {arenas.front()}};
      return;
    }
    const MergePlan merged = plan_merges(nodes, complete_nodes(plan_.replicas, layout_.replicas));
    apply_merges(merged.merges, pieces);
    node_sums_.nodes = merged.nodes;
    for (const Index survivor : merged.survivors) {
      node_sums_.sums.push_back(arenas[static_cast<std::size_t>(survivor)]);
    }
  }

  std::vector<Range> nodes_of(Range hosted) const {
    return reduction_ == Reduction::kOrdered ? present_nodes(plan_.replicas, hosted, samples_)
                                             : std::vector{hosted};
  }

  Communicator& comm_;
  const Plan& plan_;
  Reduction reduction_;
  Index arena_bytes_;
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<Communicator> across_;  // those who own the same slice on other nodes
  NodeLayout layout_;
  std::unique_ptr<SharedWindow> window_;
  std::span<Scalar> weights_;
  std::unique_ptr<Reducer> across_reducer_;
  ParameterUpdate update_;
  std::atomic<Index> arenas_taken_ = 0;
  std::vector<Index> samples_;
  const PartialGrads* partial_ = nullptr;
  PartialGrads node_sums_;
  std::span<Scalar> gradient_;
};

// Of the exchange of one rank's slice between nodes of so many ranks each.
Plan plan_across(const Plan& plan, Index on_node) {
  Plan across;
  across.world = (plan.world + on_node - 1) / on_node;
  across.replicas = plan.replicas;
  across.gradient_size = plan.gradient_size / on_node;
  across.loss_place = across.gradient_size;
  const Range slice{0, across.gradient_size};
  across.buckets = {{.range = slice, .layer = 0}};
  across.slices.emplace_back();
  for (Index node = 0; node < across.world; ++node) {
    const auto first = static_cast<std::size_t>(node * on_node);
    const auto last = static_cast<std::size_t>(std::min((node + 1) * on_node, plan.world) - 1);
    across.hosted.push_back({plan.hosted[first].begin, plan.hosted[last].end});
    across.slices.front().push_back(split_evenly(slice.size(), across.world, node));
  }
  return across;
}

std::vector<RankCosts> costs(const CostQuestion& question) {
  const Plan& plan = question.plan;
  const Index on_node =
      question.ranks_per_node > 0 ? std::min(question.ranks_per_node, plan.world) : plan.world;
  const Plan across = plan_across(plan, on_node);
  const ExchangeCosts exchange(across, question.options, Delivery::kToAll);
  return each_rank(question, [&](Index rank) {
    const Index node = rank / on_node;
    return RankCosts{.weights = rank % on_node == 0 ? question.weights_bytes() : 0,
                     .optimizer = question.slots * question.weights_bytes() / on_node,
                     .gradients = question.gradient_bytes(rank) + exchange.held(node),
                     .sent = static_cast<double>(exchange.sent(node))};
  });
}

}  // namespace

StrategyEntry central_storage_entry() {
  return {.name = "central_storage",
          .help =
              "the ranks of a node share one copy of the weights and of the optimizer state; each adds its "
              "slice of the gradients and takes the step on it in place",
          .elsewhere = "CentralStorageStrategy",
          .choose = "several ranks per node: less memory, and no message inside a node",
          .promises = {.same_bits = true, .identical_replicas = true, .one_copy_per_node = true},
          .costs = costs,
          .make = [](const StrategyContext& context) { return std::make_unique<CentralStorage>(context); }};
}

}  // namespace lockstep
