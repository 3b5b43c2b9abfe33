#include "lockstep/distributed/single_values.h"

#include <algorithm>
#include <optional>

namespace lockstep {

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
