// Nobody in particular owns a range: the summed gradient comes back to every worker, and every worker runs
// the optimizer on everything.
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

class Allreduce final : public SynchronousStrategy {
 public:
  explicit Allreduce(const StrategyContext& context)
      : comm_(context.comm),
        reducer_(make_reducer(context.exchange())),
        weights_(context.layout.size),
        update_(context.layout, context.optimizer, context.rules, &context.team) {}

  std::span<Scalar> weights(Index) override { return weights_.span(); }
  std::span<const Scalar> gather_model() override { return weights_.span(); }
  std::span<Scalar> gradient_arena() override { return reducer_->shared_arena(); }
  std::string algorithm() const override { return reducer_->algorithm(); }
  void start() override { comm_.broadcast(as_buffer(weights_.span()), 0); }
  SavedState saved_state() override {
    SavedState state;
    update_.add_saved(state, split_evenly(weights_.size(), comm_.size(), comm_.rank(), kAlignment));
    reducer_->add_saved(state);
    return state;
  }

  void begin_step(std::span<const Index> samples, double) override { reducer_->begin_step(samples); }
  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    reducer_->bucket_ready(bucket, partial);
  }
  std::size_t progress() override { return reducer_->progress(); }
  void finish_exchange() override { gradient_ = reducer_->finish(); }

  StepOutcome update(const UpdateRequest& request) override {
    return take_full_update(update_, weights_.span(), gradient_, request);
  }
  ReplicatedState replicated() override { return {&comm_, update_.named_parts(weights_.span())}; }

 private:
  Communicator& comm_;
  std::unique_ptr<Reducer> reducer_;
  AlignedBuffer<Scalar> weights_;
  ParameterUpdate update_;
  std::span<Scalar> gradient_;
};

std::vector<RankCosts> allreduce_costs(const CostModelInput& question) {
  return each_rank(question, [&](Index rank) {
    const AlgorithmCosts exchange = exchange_costs(question, rank);
    return RankCosts{.weights = question.weights_bytes(),
                     .optimizer = question.optimizer_bytes(),
                     .gradients = question.gradient_bytes(rank) + exchange.held,
                     .sent = static_cast<double>(exchange.sent)};
  });
}

}  // namespace

StrategyEntry allreduce_entry() {
  return {.name = "allreduce",
          .help = "every worker gets the sum of all gradients and takes the same optimizer step",
          .elsewhere = "MirroredStrategy, MultiWorkerMirroredStrategy, TPUStrategy; PyTorch DDP; Horovod",
          .choose =
              "the default on several nodes: any model that fits into the memory of a rank together with its "
              "optimizer state",
          .promises = {.same_bits = true, .identical_replicas = true, .exact_resume = true},
          .sums_to_all = true,
          .options = {"distribute.progress_thread"},
          .costs = allreduce_costs,
          .make = [](const StrategyContext& context) { return std::make_unique<Allreduce>(context); }};
}

}  // namespace lockstep
