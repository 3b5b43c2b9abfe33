#include "replica_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

Index hash_of(std::span<const Scalar> values) {
  return std::bit_cast<Index>(hash_bytes(std::as_bytes(values)));
}

std::uint64_t hash_of(const ReplicatedState& state, Index steps_done) {
  std::vector<Index> parts{steps_done};
  for (const NamedSpan& part : state.parts) parts.push_back(hash_of(part.values));
  return hash_bytes(std::as_bytes(std::span<const Index>(parts)));
}

// The factor on the hash of a rank in the sum over a group of ranks. The factors of a group add up to 0, so
// the sum over equal hashes is 0 (modulo 2^64); over others it is 0 only by chance.
std::uint64_t factor(int rank, int ranks) {
  const auto of = [](int other) { return hash_bytes(std::as_bytes(std::span<const int>(&other, 1))) | 1U; };
  if (rank + 1 < ranks) return of(rank);
  std::uint64_t rest = 0;
  for (int other = 0; other < rank; ++other) rest -= of(other);
  return rest;
}

// The lowest rank of those that agree with most others.
int majority(const std::vector<Index>& hashes) {
  const auto supporters = [&](Index hash) { return std::ranges::count(hashes, hash); };
  return static_cast<int>(std::ranges::max_element(hashes, {}, supporters) - hashes.begin());
}

}  // namespace

std::optional<std::uint64_t> ReplicaCheck::checksum(Index steps_done) {
  due_ = due_ || (options_.verify_every > 0 && steps_done % options_.verify_every == 0);
  if (!due_ || comm_.size() == 1) return std::nullopt;
  const ReplicatedState state = strategy_.replicated();
  if (state.among == nullptr) return std::nullopt;
  due_ = false;
  if (state.among->size() == 1) return 0;
  return factor(state.among->rank(), state.among->size()) * hash_of(state, steps_done);
}

void ReplicaCheck::report(Index steps_done) {
  const ReplicatedState state = strategy_.replicated();
  std::string found = compare(state, steps_done);
  if (state.among->size() < comm_.size()) {  // others may have found what is not seen here
    found = text_of_first(comm_, found.empty() ? 1 : 0, found);
  }
  if (found.empty()) return;
  if (options_.on_desync == OnDesync::kStop) {
    throw AgreedError(found +
                          ". A bit was flipped by faulty memory, or it is a bug; look at the host, or go "
                          "on with --comm.on_desync rebroadcast",
                      kExitComm);
  }
  strategy_.changed_replicated();
  ++repairs_;
  if (comm_.rank() == 0) log_warning("{}; all have got the state of the majority", found);
}

// *Collective* over the ranks that are to be equal; the same on all of them. "" if they are. Makes them
// equal, if that is asked for.
std::string ReplicaCheck::compare(const ReplicatedState& state, Index steps_done) {
  const std::vector<Index> all =
      gather_numbers(*state.among, std::bit_cast<Index>(hash_of(state, steps_done)));
  if (std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end()) return "";
  const int reference = majority(all);
  const std::string text = fmt::format("step {}: {}", steps_done, describe(state, all, reference));
  if (options_.on_desync == OnDesync::kRebroadcast) {
    for (const NamedSpan& part : state.parts) state.among->broadcast(as_buffer(part.values), reference);
  }
  return text;
}

std::string ReplicaCheck::describe(const ReplicatedState& state, const std::vector<Index>& hashes,
                                   int reference) {
  const std::vector<Index> ranks = gather_numbers(*state.among, comm_.rank());
  std::vector<Index> agree;
  std::vector<Index> differ;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    (hashes[i] == at(hashes, reference) ? agree : differ).push_back(ranks[i]);
  }
  std::string where = "the number of steps differs";
  for (const NamedSpan& part : state.parts) {
    const std::vector<Index> of_part = gather_numbers(*state.among, hash_of(part.values));
    if (std::ranges::adjacent_find(of_part, std::not_equal_to<>()) == of_part.end()) continue;
    where = fmt::format("{} differs by up to {:.3g}", part.name, largest_difference(state, part, reference));
    break;
  }
  return fmt::format("ranks that must hold the same do not: {}, rank{} {} against rank{} {}", where,
                     differ.size() == 1 ? "" : "s", fmt::join(differ, ", "), agree.size() == 1 ? "" : "s",
                     fmt::join(agree, ", "));
}

double ReplicaCheck::largest_difference(const ReplicatedState& state, const NamedSpan& part, int reference) {
  AlignedBuffer<Scalar> right(std::ssize(part.values));
  std::ranges::copy(part.values, right.data());
  state.among->broadcast(as_buffer(right.span()), reference);
  double largest = 0;
  for (std::size_t i = 0; i < part.values.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(part.values[i]) - static_cast<double>(right.span()[i]));
    largest =
        std::max(largest, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return std::ranges::max(gather_numbers<double>(*state.among, largest));
}

EpochAudit::EpochAudit(const TrainingContext& context)
    : context_(context),
      epoch_steps_(context.plan.epoch.steps),
      ids_(static_cast<std::size_t>(hosted().size())) {}

void EpochAudit::add_saved(SavedState& state) {
  static_assert(sizeof(IdSums) == IdSums::kNumbers * sizeof(Index));
  constexpr Index kColumns = IdSums::kNumbers;
  const Range range{hosted().begin * kColumns, hosted().end * kColumns};
  Index* const first = ids_.empty() ? nullptr : ids_.front().numbers.data();
  state.push_back({.array = "audit",
                   .size = context_.plan.sampling.replicas * kColumns,
                   .range = range,
                   .memory = as_buffer(std::span(first, static_cast<std::size_t>(range.size()))),
                   .written = range});
}

void EpochAudit::begin(Index steps_done) {
  const Index epoch = steps_done / epoch_steps_;
  if (steps_done % epoch_steps_ == 0) std::ranges::fill(ids_, IdSums{});
  first_epoch_ = epoch;
  if (!context_.settings.audit) return;
  const std::vector<Index> known = gather_numbers(context_.workers(), knows_epoch(steps_done) ? 1 : 0);
  if (std::ranges::find(known, 0) == known.end()) return;
  first_epoch_ = epoch + 1;
  if (context_.comm.rank() != 0) return;
  log_info(
      "data.audit begins with epoch {}: it is not known which samples epoch {}, which is under way, has used",
      epoch + 2, epoch + 1);
}

// Whether the sums that a checkpoint gave are those of the samples of the epoch so far. They are not where
// the order of samples has changed since, or where a version of this program made the checkpoint that counted
// on over the epochs of a run without an audit.
bool EpochAudit::knows_epoch(Index steps_done) const {
  std::vector<Index> ids;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const Index replica = hosted().begin + static_cast<Index>(i);
    IdSums expected;
    for (Index step = steps_done / epoch_steps_ * epoch_steps_; step < steps_done; ++step) {
      context_.sampler.ids(step, replica, ids);
      expected.add(ids);
    }
    if (expected != ids_[i]) return false;
  }
  return true;
}

void EpochAudit::add(const StepBatch& batch, Index step) {
  for (std::size_t i = 0; i < ids_.size(); ++i) ids_[i].add(batch.replicas[i].ids);
  if ((step + 1) % epoch_steps_ != 0) return;
  if (context_.settings.audit && step / epoch_steps_ >= first_epoch_) compare(step / epoch_steps_ + 1);
  std::ranges::fill(ids_, IdSums{});
}

// Throws on all ranks together, because all have the same sums.
void EpochAudit::compare(Index epoch) {
  const SamplingOptions& sampling = context_.plan.sampling;
  const Index times = sampling.mode == DataMode::kFull ? sampling.replicas : 1;
  const Range mine = split_evenly(sampling.rows, context_.workers().size(), context_.workers().rank());
  IdSums expected = sums_of(mine, times);
  IdSums found;
  for (const IdSums& replica : ids_) found.add(replica);
  context_.workers().all_reduce_sum(as_buffer(std::span(found.numbers)));
  context_.workers().all_reduce_sum(as_buffer(std::span(expected.numbers)));
  const std::string wrong = compare_sums(found, expected, epoch);
  if (!wrong.empty()) throw AgreedError(wrong, kExitTraining);
  context_.observer.on_audit(epoch, expected.count(), times);
}

}  // namespace lockstep
