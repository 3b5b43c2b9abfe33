#include "sharded_update.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/math/sample_weights.h"

namespace lockstep {
namespace {

class ShardedUpdate final : public SynchronousStrategy {
 public:
  explicit ShardedUpdate(const StrategyContext& context)
      : comm_(context.comm),
        plan_(context.plan),
        layout_(context.layout),
        reducer_(make_reducer(context.exchange(Delivery::kReduceScatter))),
        memory_(plan_, layout_.size),
        weights_(memory_.span()),
        update_(
            context.layout, context.optimizer, context.rules, plan_.owned(comm_.rank()),
            [this](std::span<double> sums) { comm_.all_reduce_sum(as_buffer(sums)); }, &context.team) {
    const Range first = at(plan_.slices.front(), comm_.rank());
    owns_loss_ = first.contains(plan_.loss_offset);
    for (const std::vector<Range>& bucket : plan_.slices) {
      for (const Range slice : bucket) {
        weight_slices_.push_back(intersect(slice, {0, std::ssize(weights_)}));
      }
    }
  }

  std::span<Scalar> weights(Index) override { return weights_; }
  std::span<const Scalar> gather_model() override {
    gather_weights(true);
    gathered_ = true;
    return weights_;
  }
  std::span<Scalar> divided_gradients() override { return reducer_->sum(); }

  void start() override {
    Index begin = 0;
    for (const DividedTensor& tensor : plan_.divided) {
      comm_.broadcast(as_buffer(part(weights_, {begin, tensor.range.begin})), 0);
      hand_out(tensor);
      begin = tensor.range.end;
    }
    comm_.broadcast(as_buffer(part(weights_, {begin, std::ssize(weights_)})), 0);
    release_others();
  }
  SavedState saved_state() override {
    SavedState state;
    update_.add_saved(state, {0, std::ssize(weights_)});
    reducer_->add_saved(state);
    return state;
  }

  void begin_step(std::span<const Index> samples, double) override {
    if (std::exchange(gathered_, false)) release_others();
    reducer_->begin_step(samples);
  }
  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    reducer_->bucket_ready(bucket, partial);
  }
  std::size_t progress() override { return reducer_->progress(); }
  void finish_exchange() override { gradient_ = reducer_->finish(); }

  // Optimizer state is with the owners only, as are divided tensors.
  ReplicatedState replicated() override {
    ReplicatedState state{&comm_, tensors_of(layout_, weights_)};
    for (const DividedTensor& tensor : plan_.divided) {
      const Scalar* const begin = weights_.data() + tensor.range.begin;
      std::erase_if(state.parts, [&](const NamedSpan& part) { return part.values.data() == begin; });
    }
    return state;
  }

  StepOutcome update(const UpdateRequest& request) override {
    StepOutcome outcome = take_owned_update(comm_, update_, weights_, gradient_, owns_loss_, request);
    if (!outcome.applied) return outcome;
    const Stopwatch gathering;
    gather_weights(false);
    outcome.exchange_seconds += gathering.seconds();
    return outcome;
  }

 private:
  // The first rank has all weights, and gives each of the others its own.
  void hand_out(const DividedTensor& tensor) {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int rank = 1; rank < comm_.size(); ++rank) {
      const std::span<Scalar> theirs = part(weights_, at(tensor.weights, rank));
      if (theirs.empty()) continue;
      if (comm_.rank() == 0) sends.push_back({rank, as_buffer(theirs)});
      if (comm_.rank() == rank) receives.push_back({0, as_buffer(theirs)});
    }
    comm_.start_exchange(0, sends, receives)->wait();
  }

  // The weights of other ranks that gather_model() has brought.
  void release_others() {
    for (const DividedTensor& tensor : plan_.divided) {
      const Range mine = at(tensor.weights, comm_.rank());
      memory_.release({tensor.range.begin, mine.begin});
      memory_.release({mine.end, tensor.range.end});
    }
  }

  // Gathers divided tensors, or all others.
  void gather_weights(bool divided) {
    const auto world = static_cast<std::size_t>(comm_.size());
    std::vector<std::unique_ptr<Request>> requests;
    for (std::size_t bucket = 0; bucket < plan_.slices.size(); ++bucket) {
      if (plan_.buckets[bucket].divided != divided) continue;
      const std::span<const Range> parts = std::span(weight_slices_).subspan(bucket * world, world);
      requests.push_back(comm_.start_all_gather(as_buffer(weights_), parts));
    }
    for (const auto& request : requests) request->wait();
  }

  Communicator& comm_;
  const Plan& plan_;
  const Layout& layout_;
  std::unique_ptr<Reducer> reducer_;
  ArenaMemory memory_;
  std::span<Scalar> weights_;
  ParameterUpdate update_;
  std::vector<Range> weight_slices_;  // slices by bucket, then rank
  bool owns_loss_ = false;
  bool gathered_ = false;  // weights_ holds divided tensors of other ranks
  std::span<Scalar> gradient_;
};

}  // namespace

std::unique_ptr<SynchronousStrategy> make_sharded_update(const StrategyContext& context) {
  return std::make_unique<ShardedUpdate>(context);
}

std::vector<RankCosts> sharded_update_costs(const CostModelInput& question) {
  const Plan& plan = question.plan;
  const ExchangeCosts exchange(plan, question.options, Delivery::kReduceScatter);
  return each_rank(question, [&](Index rank) {
    Index owned = 0;
    const std::vector<Range> ranges = plan.owned(rank);
    for (const Range range : ranges) owned += range.size() * Index{sizeof(Scalar)};
    const Index divided = (plan.divided_size() - plan.divided_elsewhere(rank)) * Index{sizeof(Scalar)};
    const AlgorithmCosts sums = exchange.of(rank);
    return RankCosts{
        .weights = question.weights_bytes() - plan.divided_elsewhere(rank) * Index{sizeof(Scalar)},
        .optimizer = question.optimizer.bytes(ranges, plan.threads),
        .gradients = question.gradient_bytes(rank) + sums.held,
        .sent = static_cast<double>(sums.sent + (owned - divided) * (plan.world - 1)),
        .stepped = static_cast<double>(owned) / static_cast<double>(question.weights_bytes())};
  });
}

StepOutcome take_full_update(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                             const UpdateRequest& request) {
  const Scalar loss_sum = sum[weights.size()];  // behind the gradients of the weights
  const std::span<Scalar> gradient = sum.first(weights.size());
  bool good = all_finite(std::span(&loss_sum, 1)) && update.good(gradient, request.weight);
  auto loss = static_cast<double>(loss_sum);
  update.agree_over_stages(good, loss);
  const StepOutcome outcome{.applied = good, .mean_loss = mean_of(loss, request.weight)};
  if (outcome.applied) update.step(weights, gradient, request);
  return outcome;
}

std::string describe_bad_sum(const Layout& layout, std::span<const Scalar> sum, double weight) {
  if (!std::isfinite(at(sum, layout.size))) return "the loss is not finite";
  for (auto param = layout.params.rbegin(); param != layout.params.rend(); ++param) {
    if (all_within(part(sum, param->range), max_sum(weight))) continue;
    return fmt::format("the gradient of {} is not finite or beyond 1e18", param->name);
  }
  return "the gradient is not finite";
}

StepOutcome take_owned_update(Communicator& comm, ParameterUpdate& update, std::span<Scalar> weights,
                              std::span<Scalar> sum, bool tells_loss, const UpdateRequest& request) {
  bool good = update.good(sum, request.weight);
  double loss = tells_loss ? static_cast<double>(sum[weights.size()]) : 0.0;
  update.agree_over_stages(good, loss);
  const Stopwatch agreeing;
  double known[] = {good ? 0.0 : 1.0, loss};  // ranks with a bad sum, sum of the losses
  comm.all_reduce_sum(as_buffer(std::span(known)));
  const StepOutcome outcome{.applied = known[0] == 0 && std::isfinite(known[1]),
                            .mean_loss = mean_of(known[1], request.weight),
                            .exchange_seconds = agreeing.seconds()};
  if (outcome.applied) update.step(weights, sum, request);
  return outcome;
}

// The workers own the weights among themselves (Rajbhandari et al. 2020, "ZeRO", stage 1).

StrategyEntry zero1_entry() {
  return {.name = "zero1",
          .help =
              "each worker keeps the optimizer state of its share of the weights, takes the step there and "
              "gives the new weights to all",
          .elsewhere = "ZeRO stage 1 (DeepSpeed); PyTorch ZeroRedundancyOptimizer",
          .choose =
              "when the optimizer state of a large model (twice the weights with adam) does not fit on "
              "every rank",
          .promises = {.same_bits = true,
                       .identical_replicas = true,
                       .divides_optimizer_state = true,
                       .divides_layers = true,
                       .exact_resume = true},
          .options = {"distribute.progress_thread"},
          .costs = sharded_update_costs,
          .make = make_sharded_update};
}

}  // namespace lockstep
