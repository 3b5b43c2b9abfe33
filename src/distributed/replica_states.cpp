#include "lockstep/distributed/replica_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace lockstep {
namespace {

// add() gets sums over all samples that a replica is normalised with. If its running moments cover more
// replicas, the rest is added here.
std::vector<ScopeColumns> moment_scopes(const Model& model, Index replicas) {
  std::vector<ScopeColumns> blocks;
  for (const ModelOp& op : model.ops()) {
    const BatchStatistics* statistics = op.layer->statistics();
    if (statistics == nullptr) continue;
    const BatchNormMode mode = statistics->mode();
    const bool complete = mode.moments_with(0, replicas) == mode.normalised_with(0, replicas);
    blocks.push_back(
        {.columns = statistics->forward_count(), .scope = [mode, replicas, complete](Index replica) {
           return complete ? Range{replica, replica + 1} : mode.moments_with(replica, replicas);
         }});
  }
  return blocks;
}

}  // namespace

ReplicaStates::ReplicaStates(Communicator& comm, const Plan& plan, const Model& model)
    : comm_(comm),
      model_(model),
      hosted_(plan.hosted_by(comm.rank())),
      gathered_(model.state_layout().size),
      adopted_(model.state_layout().size),
      columns_of_(model.ops().size(), -1),
      scope_sums_(comm, plan, moment_scopes(model, plan.replicas)) {
  for (Index i = 0; i < hosted_.size(); ++i) states_.emplace_back(model.state_layout().size);
  Index first = 0;
  for (std::size_t i = 0; i < model.ops().size(); ++i) {
    const BatchStatistics* statistics = model.ops()[i].layer->statistics();
    if (statistics == nullptr) continue;
    columns_of_[i] = std::ssize(columns_);
    columns_.push_back({static_cast<Index>(i), {first, first + statistics->forward_count()}});
    first = columns_.back().columns.end;
  }
  sums_.resize(static_cast<std::size_t>(hosted_.size() * first));
}

std::span<double> ReplicaStates::row(Index replica) {
  const auto columns = static_cast<std::size_t>(scope_sums_.columns());
  return std::span(sums_).subspan(local(replica) * columns, columns);
}

void ReplicaStates::start() {
  gather();
  adopt(0);
}

void ReplicaStates::add_saved(SavedState& state) {
  if (gathered_.size() == 0) return;
  for (Index replica = hosted_.begin; replica < hosted_.end; ++replica) {
    const Range all{0, gathered_.size()};
    state.push_back({.array = fmt::format("replica.{}.moments", replica),
                     .size = all.end,
                     .range = all,
                     .memory = as_buffer(of(replica)),
                     .written = all,
                     .by_stage = true,
                     .chunk_offsets = model_.state_layout().chunk_offsets()});
  }
}

void ReplicaStates::resume() {
  const std::span<const Scalar> gathered = gather();
  std::ranges::copy(gathered, adopted_.data());
}

std::span<const Scalar> ReplicaStates::gather() {
  if (gathered_.size() == 0) return {};
  if (hosted_.contains(0)) std::ranges::copy(of(0), gathered_.data());
  comm_.broadcast(as_buffer(gathered_.span()), 0);
  return gathered_.span();
}

void ReplicaStates::begin_step() {
  std::ranges::fill(sums_, 0.0);
}

void ReplicaStates::add(Index replica, Index op, std::span<const double> sums) {
  const OpColumns& own = at(columns_, at(columns_of_, op));
  const std::span<double> mine = part(row(replica), own.columns);
  std::ranges::transform(mine, sums, mine.begin(), std::plus<>());
}

void ReplicaStates::forget(Index replica) {
  std::ranges::fill(row(replica), 0.0);
}

void ReplicaStates::update(BatchStatistics::Update update) {
  scope_sums_.combine(sums_);
  for (Index replica = hosted_.begin; replica < hosted_.end; ++replica) {
    update_state(row(replica), of(replica), update, of(replica));
  }
}

void ReplicaStates::update_state(std::span<const double> sums, std::span<const Scalar> around,
                                 BatchStatistics::Update update, std::span<Scalar> state) {
  for (const OpColumns& own : columns_) {
    model_.op(own.op).layer->statistics()->update_state(part(sums, own.columns), around, update, state);
  }
}

ReplicaStates::Copy ReplicaStates::copy() const {
  const auto numbers = [](const AlignedBuffer<Scalar>& state) {
    return std::vector<Scalar>(state.span().begin(), state.span().end());
  };
  Copy copy{.states = {}, .gathered = numbers(gathered_), .adopted = numbers(adopted_)};
  for (const AlignedBuffer<Scalar>& state : states_) copy.states.push_back(numbers(state));
  return copy;
}

void ReplicaStates::restore(const Copy& copy) {
  for (std::size_t i = 0; i < states_.size(); ++i) std::ranges::copy(copy.states[i], states_[i].data());
  std::ranges::copy(copy.gathered, gathered_.data());
  std::ranges::copy(copy.adopted, adopted_.data());
}

std::vector<double> ReplicaStates::sums() const {
  std::vector<double> total(static_cast<std::size_t>(scope_sums_.columns()), 0.0);
  for (std::size_t i = 0; i < sums_.size(); ++i) total[i % total.size()] += sums_[i];
  return total;
}

void ReplicaStates::move_gathered(std::span<const double> sums, BatchStatistics::Update update) {
  update_state(sums, adopted_.span(), update, gathered_.span());
}

void ReplicaStates::adopt(int root) {
  comm_.broadcast(as_buffer(gathered_.span()), root);
  std::ranges::copy(gathered_.span(), adopted_.data());
  for (AlignedBuffer<Scalar>& state : states_) std::ranges::copy(gathered_.span(), state.data());
}

}  // namespace lockstep
