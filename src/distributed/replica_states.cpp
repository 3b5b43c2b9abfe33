#include "lockstep/distributed/replica_states.h"

#include <fmt/format.h>

#include <optional>

#include "lockstep/math/fixed_tree.h"

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

void ReplicaStates::add(Index replica, Index op, std::span<const double> sums) {
  const OpColumns& own = at(columns_, at(columns_of_, op));
  const std::span<double> mine = part(row(replica), own.columns);
  std::ranges::transform(mine, sums, mine.begin(), std::plus<>());
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

void ReplicaStates::adopt(int root) {
  comm_.broadcast(as_buffer(gathered_.span()), root);
  std::ranges::copy(gathered_.span(), adopted_.data());
  for (AlignedBuffer<Scalar>& state : states_) std::ranges::copy(gathered_.span(), state.data());
}

ScopeSums::ScopeSums(Communicator& comm, const Plan& plan, std::vector<ScopeColumns> blocks)
    : comm_(comm), hosted_(plan.hosted_by(comm.rank())), blocks_(std::move(blocks)) {
  for (const ScopeColumns& block : blocks_) {
    columns_ += block.columns;
    for (const Range hosted : plan.hosted) {
      for (Index replica = hosted.begin; replica < hosted.end; ++replica) {
        const Range scope = block.scope(replica);
        crosses_replicas_ |= scope.size() > 1;
        crosses_ranks_ |= !hosted.contains(scope);
      }
    }
  }
  for (const Range hosted : plan.hosted) parts_.push_back({hosted.begin * columns_, hosted.end * columns_});
  all_.resize(static_cast<std::size_t>(plan.replicas * columns_));
}

void ScopeSums::combine(std::span<double> rows) {
  if (!crosses_replicas_) return;
  std::ranges::copy(rows, all_.begin() + at(parts_, comm_.rank()).begin);
  if (crosses_ranks_) comm_.start_all_gather(as_buffer(std::span(all_)), parts_)->wait();
  Index first = 0;
  for (const ScopeColumns& block : blocks_) {
    const Range columns{first, first + block.columns};
    Range summed;
    for (Index replica = hosted_.begin; replica < hosted_.end; ++replica) {
      double* out = rows.data() + (replica - hosted_.begin) * columns_ + columns.begin;
      const Range scope = block.scope(replica);
      if (scope == summed) {
        std::copy_n(out - columns_, columns.size(), out);  // the replica before has the same scope
      } else {
        tree_sum_rows(std::span<const double>(all_).subspan(static_cast<std::size_t>(columns.begin)),
                      columns_, scope, {out, static_cast<std::size_t>(columns.size())});
        summed = scope;
      }
    }
    first = columns.end;
  }
}

SingleValues::SingleValues(const Model& model, Index replicas, Index accumulate)
    : model_(model),
      accumulate_(accumulate),
      ops_(std::ssize(model.ops())),
      together_(model.runs_in_lockstep(replicas)),
      first_(static_cast<std::size_t>(replicas), ops_) {
  for (Index i = 0; i < ops_; ++i) {
    const BatchStatistics* statistics = model.op(i).layer->statistics();
    if (statistics == nullptr) continue;
    const std::optional<ImageShape> image = as_image(model.op(i).out);
    if (!image || image->pixels() == 1) norms_.push_back({i, statistics->mode()});
  }
}

// The fewest samples, if any, that are normalised at once over the replicas `scope`. If replicas sync, all
// have as many parts, and some parts may be empty.
Index SingleValues::min_normalised(Range scope) const {
  Index fewest = 0;
  for (Index part = 0; part < accumulate_; ++part) {
    Index samples = 0;
    for (Index replica = scope.begin; replica < scope.end; ++replica) {
      const Index own = at(rows_, replica);
      const Index parts = together_ ? accumulate_ : std::min(accumulate_, own);
      if (part < parts) samples += split_evenly(own, parts, part).size();
    }
    if (samples > 0) fewest = fewest == 0 ? samples : std::min(fewest, samples);
  }
  return fewest;
}

void SingleValues::look(std::span<const Index> rows) {
  if (norms_.empty() || std::ranges::equal(rows, rows_)) return;
  rows_.assign(rows.begin(), rows.end());
  std::ranges::fill(first_, ops_);
  replicas_with_ = 0;
  const auto enough = [this](Index own) { return own == 0 || own >= 2 * accumulate_; };
  if (std::ranges::all_of(rows, enough)) return;
  const auto replicas = std::ssize(rows);
  for (const Norm& norm : norms_) {
    for (Index begin = 0; begin < replicas;) {
      const Range scope = norm.mode.normalised_with(begin, replicas);
      begin = scope.end;
      if (min_normalised(scope) != 1) continue;
      for (Index replica = scope.begin; replica < scope.end; ++replica) {
        if (at(rows, replica) == 0 || has(replica)) continue;
        at(first_, replica) = norm.op;
        ++replicas_with_;
      }
    }
  }
}

Index SingleValues::replicas(Range some) const {
  Index count = 0;
  for (Index replica = some.begin; replica < some.end; ++replica) count += has(replica) ? 1 : 0;
  return count;
}

bool SingleValues::are_followed(Index replica, Index op) const {
  if (replicas_with_ == 0) return true;
  const Range scope = model_.op(op).layer->statistics()->mode().normalised_with(replica, std::ssize(first_));
  return std::all_of(first_.begin() + scope.begin, first_.begin() + scope.end,
                     [op](Index first) { return op <= first; });
}

}  // namespace lockstep
