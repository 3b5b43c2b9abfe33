#include "epoch_audit.h"

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"

namespace lockstep {

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
