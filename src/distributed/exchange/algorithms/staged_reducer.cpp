// A staged algorithm is a list of stages for each rank and bucket (ring.cpp, rabenseifner.cpp make such
// lists). In a stage a rank sends one range of the bucket to a peer, receives another from a peer, and then
// either adds what it received (Write::kAdd) or replaces its own values by it (Write::kReplace). A stage
// starts when the one before it on this rank is complete; after the last stage the bucket holds the sum.
//
// Several buckets are under way at a time. Each has a channel of its own, so that messages of two buckets
// between the same ranks are not confused, and goes from stage to stage whenever progress() finds its request
// done. Received numbers that are to be added need a buffer; those that replace are received in place.
// Buckets complete in the order of the plan, as far as callers see: complete_ counts those before the first
// unfinished one.
#include <algorithm>

#include "distributed/exchange/reducers.h"
#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

class StagedReducer final : public Reducer {
 public:
  StagedReducer(Communicator& comm, const Plan& plan, const MakeStages& stages)
      : comm_(comm.split(0, comm.rank())) {
    for (const Bucket& bucket : plan.buckets) {
      BucketState& state = states_.emplace_back();
      state.channel = static_cast<int>(states_.size()) - 1;
      state.stages = stages(comm_->rank(), comm_->size(), bucket.range.size());
      state.received = AlignedBuffer<Scalar>(max_added(state.stages));
    }
  }

  void begin_step(std::span<const Index>) override {
    started_ = 0;
    complete_ = 0;
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    sum_ = partial.sums.front();
    BucketState& state = states_[started_++];
    state.values = part(sum_, bucket.range);
    state.next = 0;
    start_stage(state);
    progress();
  }

  std::size_t progress() override {
    for (std::size_t i = complete_; i < started_; ++i) {
      BucketState& state = states_[i];
      while (state.request && state.request->test()) finish_stage(state);
    }
    while (complete_ < started_ && !states_[complete_].request) ++complete_;
    return complete_;
  }

  std::span<Scalar> sum() override { return sum_; }

  std::span<Scalar> finish() override {
    while (progress() < started_) states_[complete_].request->wait();
    return sum_;
  }

 private:
  struct BucketState {
    int channel = 0;
    std::vector<Stage> stages = {};
    AlignedBuffer<Scalar> received = {};    // received numbers that are to be added
    std::span<Scalar> values = {};          // numbers of the bucket
    std::size_t next = 0;                   // stage
    std::unique_ptr<Request> request = {};  // request of the stage under way; none: the bucket is complete
  };

  static std::span<Scalar> receive_buffer(BucketState& state, const Stage& stage) {
    if (stage.write == Write::kReplace) return part(state.values, stage.receive->range);
    return state.received.span().first(static_cast<std::size_t>(stage.receive->range.size()));
  }

  void start_stage(BucketState& state) {
    state.request.reset();
    if (state.next == state.stages.size()) return;
    const Stage& stage = state.stages[state.next++];
    sends_.clear();
    receives_.clear();
    if (stage.send) {
      const std::span<const Scalar> values = part(state.values, stage.send->range);
      sends_.push_back({stage.send->peer, as_buffer(values)});
    }
    if (stage.receive) receives_.push_back({stage.receive->peer, as_buffer(receive_buffer(state, stage))});
    state.request = comm_->start_exchange(state.channel, sends_, receives_);
  }

  void finish_stage(BucketState& state) {
    const Stage& stage = state.stages[state.next - 1];
    if (stage.receive && stage.write == Write::kAdd) {
      add(part(state.values, stage.receive->range), receive_buffer(state, stage));
    }
    start_stage(state);
  }

  std::unique_ptr<Communicator> comm_;  // a communicator of its own: so its channels are
  std::vector<BucketState> states_;     // one for each bucket
  std::size_t started_ = 0;
  std::size_t complete_ = 0;
  std::span<Scalar> sum_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void append_stage(std::vector<Stage>& stages, const Transfer& send, const Transfer& receive, Write write) {
  Stage stage{.send = {}, .receive = {}, .write = write};
  if (!send.range.empty()) stage.send = send;
  if (!receive.range.empty()) stage.receive = receive;
  if (stage.send || stage.receive) stages.push_back(stage);
}

Index numbers_sent(const std::vector<Stage>& stages) {
  Index sum = 0;
  for (const Stage& stage : stages) sum += stage.send ? stage.send->range.size() : 0;
  return sum;
}

Index max_added(const std::vector<Stage>& stages) {
  Index most = 0;
  for (const Stage& stage : stages) {
    if (stage.receive && stage.write == Write::kAdd) most = std::max(most, stage.receive->range.size());
  }
  return most;
}

std::unique_ptr<Reducer> make_staged_reducer(Communicator& comm, const Plan& plan, const MakeStages& stages) {
  return std::make_unique<StagedReducer>(comm, plan, stages);
}

AlgorithmCosts staged_costs(const Plan& plan, Index rank, const MakeStages& stages) {
  AlgorithmCosts costs;
  for (const Bucket& bucket : plan.buckets) {
    const std::vector<Stage> list =
        stages(static_cast<int>(rank), static_cast<int>(plan.world), bucket.range.size());
    costs.sent += numbers_sent(list) * Index{sizeof(Scalar)};
    costs.held += max_added(list) * Index{sizeof(Scalar)};
  }
  return costs;
}

AlgorithmEntry staged_entry(const std::string& name, const std::string& help, const MakeStages& stages) {
  return {.name = name,
          .help = help,
          .refusal = [](const Nodes&) { return std::string(); },
          .make =
              [stages](const ExchangeRequest& request) {
                return make_staged_reducer(request.comm, request.plan, stages);
              },
          .costs = [stages](const CostModelInput& question,
                            Index rank) { return staged_costs(question.plan, rank, stages); }};
}

}  // namespace lockstep
