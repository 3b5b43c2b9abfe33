// Each replica takes local steps, with weights and optimizer state of its own; every H steps the weights of
// all are averaged (Stich 2019, "Local SGD converges fast and communicates little"). Before local_after all
// take each step together, as with allreduce (Lin et al. 2020, "Don't use large mini-batches, use local
// SGD"), and the first replica of each rank stands for the others.
//
// An average is sent like a gradient, in arenas of gradients that the step has used up. At the offset of the
// loss the number of replicas is sent that found a bad number and stopped training: so all ranks learn of it
// together, and a local step needs no message.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

// A replica that takes local steps, until one finds a bad number.
struct LocalReplica {
  LocalReplica(Index replica, const StrategyContext& context)
      : number(replica),
        weights(context.layout.size),
        update(context.layout, context.optimizer, context.rules, &context.team) {}

  bool stopped() const { return bad_step > 0; }

  // A step with the sum of its gradients and, behind them, of its losses; or it stops.
  void step(const Layout& layout, std::span<Scalar> sum, const UpdateRequest& request) {
    if (take_full_update(update, weights.span(), sum, request).applied) return;
    bad_step = request.step;
    bad_number = fmt::format("step {}: replica {}: {}", request.step, number,
                             describe_bad_sum(layout, sum, request.weight));
  }

  // Its optimizer state and, unless all replicas have the same, its weights.
  void add_saved(SavedState& state, bool without_weights) {
    const std::string prefix = fmt::format("replica.{}.", number);
    const Range all{0, weights.size()};
    update.add_saved(state, all, prefix);
    if (without_weights) return;
    state.push_back({.array = prefix + "weights",
                     .size = all.end,
                     .range = all,
                     .memory = as_buffer(weights.span()),
                     .written = all});
  }

  Index number;
  AlignedBuffer<Scalar> weights;
  ParameterUpdate update;
  Index bad_step = 0;      // step whose loss or gradient was not finite; 0: none
  std::string bad_number;  // "step 7: replica 3: ..."
};

// Block momentum on the average of the replicas: the change of the weights over a block of local steps is
// taken like a gradient, with a learning rate and momentum of its own (Chen & Huo 2016, "Scalable training of
// deep learning machines by incremental block training with intra-block parallel optimization and blockwise
// model-update filtering").
class BlockMomentum {
 public:
  // Whether the options ask for more than the plain average.
  static bool wanted(const DistOptions& options) {
    return options.block_momentum > 0 || options.block_lr != 1;
  }

  BlockMomentum(const DistOptions& options, Index size) : options_(options), last_(size), velocity_(size) {}

  // The weights that the first block starts from.
  void start(std::span<const Scalar> weights) { std::ranges::copy(weights, last_.data()); }

  // Saves the state that is kept from block to block; rank 0 writes it.
  void add_saved(SavedState& state, int rank) {
    state.push_back(saved_by_first(rank, "block.last", last_.span()));
    state.push_back(saved_by_first(rank, "block.velocity", velocity_.span()));
  }

  // That state by name, for comparisons of ranks.
  std::vector<NamedSpan> named_parts() {
    return {{"what the block started from", last_.span()}, {"block momentum", velocity_.span()}};
  }

  // Turns the average at the end of a block into the weights that the next block starts from. With Nesterov's
  // momentum a block starts where the velocity would lead if nothing were learned in it: both forms of the
  // paper, written as changes of the weights that blocks start from.
  void apply(std::span<Scalar> average) {
    const auto momentum = static_cast<Scalar>(options_.block_momentum);
    const auto lr = static_cast<Scalar>(options_.block_lr);
    Scalar* const last = last_.data();
    Scalar* const velocity = velocity_.data();
    for (std::size_t i = 0; i < average.size(); ++i) {
      const Scalar change = lr * (average[i] - last[i]);
      velocity[i] = momentum * velocity[i] + change;
      last[i] += options_.block_nesterov ? momentum * velocity[i] + change : velocity[i];
      average[i] = last[i];
    }
  }

 private:
  const DistOptions& options_;
  AlignedBuffer<Scalar> last_;  // weights that the block started from
  AlignedBuffer<Scalar> velocity_;
};

class LocalSgd final : public SynchronousStrategy {
 public:
  explicit LocalSgd(const StrategyContext& context)
      : comm_(context.comm),
        options_(context.options),
        plan_(context.plan),
        layout_(context.layout),
        hosted_(plan_.hosted_by(comm_.rank())),
        reducer_(make_reducer(exchange_of(context, hosted_.size()))),
        local_samples_(static_cast<std::size_t>(plan_.replicas), 0) {
    for (Index number = hosted_.begin; number < hosted_.end; ++number) {
      replicas_.emplace_back(number, context);
      const std::span<Scalar> shared = reducer_->shared_arena();
      arenas_.push_back(shared.empty() ? own_arenas_.emplace_back(plan_.gradient_size).span() : shared);
    }
    for (std::size_t param = 0; param < layout_.params.size(); ++param) {
      if (context.rules.of(layout_, param).lr == 0) frozen_.push_back(layout_.params[param].range);
    }
    if (BlockMomentum::wanted(options_)) block_.emplace(options_, layout_.size);
  }

  std::span<Scalar> weights(Index replica) override {
    return (equal_ ? replicas_.front() : hosted_replica(replica)).weights.span();
  }
  std::span<Scalar> gradient_arena() override { return arenas_[arenas_taken_++]; }
  std::string algorithm() const override { return reducer_->algorithm(); }
  void start() override { comm_.broadcast(as_buffer(weights(hosted_.begin)), 0); }

  void resume_after(Index steps) override {
    steps_done_ = steps;
    equal_ = steps <= plan_.local_from || (steps - plan_.local_from) % options_.average_every == 0;
  }

  // Once replicas have taken local steps, each has a state of its own.
  SavedState saved_state() override {
    SavedState state;
    reducer_->add_saved(state);
    if (steps_done_ <= plan_.local_from) {
      replicas_.front().update.add_saved(state,
                                         split_evenly(layout_.size, comm_.size(), comm_.rank(), kAlignment));
      return state;
    }
    for (LocalReplica& replica : replicas_) replica.add_saved(state, equal_);
    if (block_) block_->add_saved(state, comm_.rank());
    state.push_back(saved_by_first(comm_.rank(), "samples_alone", std::span(local_samples_)));
    return state;
  }

  std::span<const Scalar> gather_model() override {
    if (equal_) return weights(hosted_.begin);
    if (average_.empty()) average_ = average_weights();
    return average_;
  }

  void begin_step(std::span<const Index> samples, double) override {
    average_ = {};
    takes_local_step_ = local();
    for (std::size_t replica = 0; takes_local_step_ && replica < samples.size(); ++replica) {
      local_samples_[replica] += samples[replica];
    }
    if (!takes_local_step_) reducer_->begin_step(samples);
    if (takes_local_step_ && equal_) part_ways();
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    partial_ = &partial;
    if (!takes_local_step_) exchange(bucket, partial);
  }
  std::size_t progress() override { return takes_local_step_ ? 0 : reducer_->progress(); }
  bool local() const override { return steps_done_ >= plan_.local_from; }
  bool overlaps() const override { return !local(); }
  void finish_exchange() override {
    if (!takes_local_step_) gradient_ = reducer_->finish();
  }

  StepOutcome update(const UpdateRequest& request) override {
    steps_done_ = request.step;
    LocalReplica& first = replicas_.front();
    if (!takes_local_step_) return take_full_update(first.update, first.weights.span(), gradient_, request);
    StepOutcome outcome = local_step(request);
    if ((request.step - plan_.local_from) % options_.average_every != 0) return outcome;
    const Stopwatch averaging;
    outcome.applied = average();
    outcome.exchange_seconds = averaging.seconds();
    outcome.exchanged = true;
    return outcome;
  }

  // Replicas can be compared only right after an average.
  ReplicatedState replicated() override {
    if (!equal_) return {};
    ReplicatedState state{&comm_, tensors_of(layout_, replicas_.front().weights.span())};
    if (block_) std::ranges::copy(block_->named_parts(), std::back_inserter(state.parts));
    return state;
  }

  std::string late_bad_number() override {
    gather_model();
    if (!any_stopped_) return {};
    Index step = std::numeric_limits<Index>::max();
    std::string text;
    for (const LocalReplica& replica : replicas_) {
      if (!replica.stopped() || replica.bad_step >= step) continue;
      step = replica.bad_step;
      text = replica.bad_number;
    }
    return text_of_first(comm_, step, text);
  }

 private:
  // The request of the context, with an arena for each replica.
  static ExchangeRequest exchange_of(const StrategyContext& context, Index replicas) {
    ExchangeRequest request = context.exchange();
    request.gradient_arenas = replicas;
    return request;
  }

  LocalReplica& hosted_replica(Index replica) { return at(replicas_, replica - hosted_.begin); }

  // All start from the weights of the first and, if they have taken no local step before, from its optimizer
  // state.
  void part_ways() {
    LocalReplica& first = replicas_.front();
    const bool first_time = steps_done_ == plan_.local_from;
    for (LocalReplica& replica : std::span(replicas_).subspan(1)) {
      std::ranges::copy(first.weights.span(), replica.weights.data());
      for (std::size_t slot = 0; first_time && slot < first.update.slots().size(); ++slot) {
        std::ranges::copy(first.update.slots()[slot].span(), replica.update.slots()[slot].data());
      }
    }
    if (first_time && block_) block_->start(first.weights.span());
    equal_ = false;
  }

  StepOutcome local_step(const UpdateRequest& request) {
    StepOutcome outcome{.applied = true};
    double loss = 0;
    double weight = 0;
    for (std::size_t i = 0; i < partial_->subtrees.size(); ++i) {
      LocalReplica& replica = hosted_replica(partial_->subtrees[i].begin);
      UpdateRequest own = request;
      own.weight = at(request.replica_weights, replica.number - hosted_.begin);
      if (replica.number > 0) own.statistics = nullptr;  // those of the first replica stand for all
      loss += static_cast<double>(at(partial_->sums[i], plan_.loss_offset));
      weight += own.weight;
      if (!replica.stopped()) replica.step(layout_, partial_->sums[i], own);
    }
    if (weight > 0) mean_loss_ = loss / weight;
    outcome.mean_loss = mean_loss_;
    for (const LocalReplica& replica : replicas_) {
      if (replica.stopped()) outcome.stopped.push_back(replica.number);
    }
    return outcome;
  }

  // The end of an interval: false, and the replicas stay as they are, if one of them stands still.
  bool average() {
    average_ = average_weights();
    if (any_stopped_) return false;
    if (block_) block_->apply(average_);
    keep_frozen(average_);
    std::ranges::copy(average_, replicas_.front().weights.data());
    equal_ = true;
    for (std::size_t slot = 0; options_.average_state && slot < replicas_.front().update.slots().size();
         ++slot) {
      const std::span<const Scalar> mean =
          average([slot](LocalReplica& replica) { return replica.update.slots()[slot].span(); });
      for (LocalReplica& replica : replicas_) {
        AlignedBuffer<Scalar>& own = replica.update.slots()[slot];
        std::ranges::copy(mean.first(own.span().size()), own.data());
      }
    }
    std::ranges::fill(local_samples_, 0);
    return true;
  }

  std::span<Scalar> average_weights() {
    const std::span<Scalar> mean = average([](LocalReplica& replica) { return replica.weights.span(); });
    any_stopped_ = at(mean, plan_.loss_offset) > 0;
    keep_frozen(mean);
    return part(mean, {0, layout_.size});
  }

  // A mean of equal numbers can be another one by rounding.
  void keep_frozen(std::span<Scalar> mean) {
    for (const Range range : frozen_) {
      std::ranges::copy(part(std::span<const Scalar>(replicas_.front().weights.span()), range),
                        part(mean, range).begin());
    }
  }

  // A replica counts by its samples since the last average: 1 if all had as many.
  Scalar share(Index replica) const {
    const Index all = std::accumulate(local_samples_.begin(), local_samples_.end(), Index{0});
    const auto own = static_cast<double>(at(local_samples_, replica) * plan_.replicas);
    return static_cast<Scalar>(own / static_cast<double>(all));
  }

  // Starts the sum of a bucket of pieces, each of one replica, which are used up.
  void exchange(const Bucket& bucket, const PartialGrads& pieces) {
    const MergePlan plan = plan_partial_sums(options_.reduction, plan_.replicas, hosted_, pieces.subtrees);
    std::vector<std::span<Scalar>> slices;
    for (const std::span<Scalar> piece : pieces.sums) slices.push_back(part(piece, bucket.range));
    apply_merges(plan.merges, slices);
    sums_ = surviving_sums(plan, pieces.sums);
    if (sums_.sums.empty() && options_.reduction == Reduction::kNative) {
      // No replica here has a piece: the others still expect a contribution.
      std::ranges::fill(part(arenas_.front(), bucket.range), Scalar{0});
      sums_ = {.subtrees = {hosted_}, .sums = {arenas_.front()}};
    }
    reducer_->bucket_ready(bucket, sums_);
  }

  // *Collective.* The mean over all replicas of what each has, at the start of an arena; at the offset of the
  // loss, the share of them that stand still. Valid until the next exchange.
  std::span<Scalar> average(const std::function<std::span<const Scalar>(LocalReplica&)>& of) {
    PartialGrads pieces;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      const std::span<Scalar> arena = arenas_[i];
      const Scalar factor = share(replicas_[i].number);
      const auto end = std::ranges::transform(of(replicas_[i]), arena.begin(), [factor](Scalar value) {
                         return factor * value;
                       }).out;
      std::fill(end, arena.end(), Scalar{0});
      at(arena, plan_.loss_offset) = replicas_[i].stopped() ? Scalar{1} : Scalar{0};
      pieces.subtrees.push_back({replicas_[i].number, replicas_[i].number + 1});
      pieces.sums.push_back(arena);
    }
    reducer_->begin_step(std::vector<Index>(static_cast<std::size_t>(plan_.replicas), 1));
    for (const Bucket& bucket : plan_.buckets) exchange(bucket, pieces);
    const std::span<Scalar> sum = reducer_->finish();
    as_array(sum) /= static_cast<Scalar>(plan_.replicas);
    return sum;
  }

  Communicator& comm_;
  const DistOptions& options_;
  const Plan& plan_;
  const Layout& layout_;
  Range hosted_;
  std::unique_ptr<Reducer> reducer_;
  std::vector<LocalReplica> replicas_;  // hosted ones
  std::vector<AlignedBuffer<Scalar>> own_arenas_;
  std::vector<std::span<Scalar>> arenas_;  // arenas of gradients, one for each of them
  std::atomic<std::size_t> arenas_taken_ = 0;
  std::vector<Range> frozen_;  // tensors whose weights stay as they are
  std::optional<BlockMomentum> block_;
  std::vector<Index> local_samples_;  // samples of each replica since the last average
  Index steps_done_ = 0;
  bool takes_local_step_ = false;  // this step is a local one
  bool equal_ = true;              // the weights of the first are those of all
  bool any_stopped_ = false;       // a replica had stopped at the last average; the same on all ranks
  double mean_loss_ = 0;
  const PartialGrads* partial_ = nullptr;
  PartialGrads sums_;  // of the replicas here, in the exchange
  std::span<Scalar> gradient_;
  std::span<Scalar> average_;  // empty: not known in this step
};

// Weights and, if it is averaged too, the optimizer's state.
Index arenas_of_average(const CostModelInput& question) {
  return 1 + (question.options.average_state ? question.optimizer.slots() : 0);
}

// Before local_from gradients are exchanged in each step, then weights now and then.
std::vector<RankCosts> local_sgd_costs(const CostModelInput& question) {
  const Plan& plan = question.plan;
  const DistOptions& options = question.options;
  const Index together = std::min(plan.local_from, question.steps);
  const Index averages = (question.steps - together) / options.average_every;
  const double exchanges = static_cast<double>(together + averages * arenas_of_average(question)) /
                           static_cast<double>(question.steps);
  return each_rank(question, [&](Index rank) {
    const Index hosted = plan.hosted_by(rank).size();
    const AlgorithmCosts exchange = exchange_costs(question, rank);
    const Index blocks = BlockMomentum::wanted(options) ? 2 : 0;
    return RankCosts{.weights = (hosted + blocks) * question.weights_bytes(),
                     .optimizer = hosted * question.optimizer_bytes(),
                     .gradients = question.gradient_bytes(rank) + exchange.held,
                     .sent = exchanges * static_cast<double>(exchange.sent),
                     .stepped = static_cast<double>(hosted)};
  });
}

}  // namespace

StrategyEntry local_sgd_entry() {
  return {
      .name = "local_sgd",
      .help =
          "each replica takes its own steps with its own weights and optimizer state; every so many "
          "steps the weights of all replicas are averaged",
      .elsewhere =
          "post-local SGD (PyTorch PostLocalSGDOptimizer), model averaging (CNTK BlockMomentumSGD), FedAvg",
      .choose = "a slow network: messages only every average_every steps, for other numbers than allreduce",
      .promises = {.same_bits_alone = true, .exact_resume = true},
      .sums_to_all = true,
      .weights_per_replica = true,
      .options = {"distribute.average_every", "distribute.average_state", "distribute.local_after",
                  "distribute.block_momentum", "distribute.block_lr"},
      .costs = local_sgd_costs,
      .make = [](const StrategyContext& context) -> std::unique_ptr<Strategy> {
        return std::make_unique<LocalSgd>(context);
      }};
}

}  // namespace lockstep
