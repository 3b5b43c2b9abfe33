#include "lockstep/data/loading/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/base/trace.h"

namespace lockstep {
namespace {

// 22 bits each, so that their sums fit.
constexpr std::uint64_t kMask = (std::uint64_t{1} << 22) - 1;

void add_one(Index id, Index times, IdSums& sums) {
  const std::uint64_t hash = id_hash(0, id);
  sums.numbers[0] += times;
  sums.numbers[1] += times * static_cast<Index>(hash & kMask);
  sums.numbers[2] += times * static_cast<Index>(hash >> 22 & kMask);
}

}  // namespace

Index steps_ahead(const DataOptions& options, bool spare_core, bool streamed) {
  constexpr Index kEnough = 8;
  if (options.prefetch >= 0) return options.prefetch;
  return spare_core || streamed ? kEnough : 0;
}

Loader::Loader(const Records& records, const DatasetInfo& info, const Sampler& sampler,
               const Normaliser& normaliser, const LoaderOptions& options)
    : records_(records),
      info_(info),
      sampler_(sampler),
      normaliser_(normaliser),
      options_(options),
      filled_end_(options.steps.begin),
      taken_end_(options.steps.begin) {
  assert(options.prefetch >= 0);
  const Index capacity = sampler.max_count();
  ids_.resize(static_cast<std::size_t>(options.replicas.size()));
  for (std::vector<Index>& ids : ids_) ids.reserve(static_cast<std::size_t>(capacity));
  ring_.resize(static_cast<std::size_t>(ahead() + 1));
  for (StepBatch& batch : ring_) {
    batch.replicas.resize(ids_.size());
    batch.rows.resize(static_cast<std::size_t>(sampler.replicas()));
    for (Index i = 0; i < std::ssize(ids_); ++i) {
      ReplicaBatch& samples = at(batch.replicas, i);
      samples.target_columns = info.target_columns;
      if (!reads()) continue;
      samples.features =
          AlignedBuffer<Scalar>(options.part == RecordPart::kAll ? capacity * info.features.size() : 0);
      samples.targets = AlignedBuffer<Scalar>(capacity * info.label_columns());
      samples.weights = AlignedBuffer<Scalar>(options.weighing.has_weights(info) ? capacity : 0);
      samples.present = AlignedBuffer<Scalar>(options.weighing.has_shares() ? capacity : 0);
      samples.lengths = AlignedBuffer<Scalar>(info.has_lengths ? capacity : 0);
      if (options.prefetch > 0 || weighs()) continue;
      samples.prepare = [this, i] { fill(ring_.front(), i); };
    }
  }
  if (ahead() > 0) thread_ = std::jthread([this] { fill_ahead(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  took_one_.notify_all();
}

const StepBatch& Loader::next() {
  // Beyond the last step nobody fills the ring: waiting for it would never end.
  if (taken_end_ >= options_.steps.end) throw std::logic_error("the loader has no further step");
  if (ahead() == 0) {
    StepBatch& batch = begin(taken_end_++);
    if (weighs()) fill_together(batch);
    if (!reads()) {
      for (Index i = 0; i < std::ssize(ids_); ++i) choose(batch, i);
    }
    return batch;
  }
  std::unique_lock lock(mutex_);
  filled_one_.wait(lock, [this] { return filled_end_ > taken_end_ || failure_; });
  if (filled_end_ == taken_end_) std::rethrow_exception(failure_);
  const StepBatch& batch = slot(taken_end_++);
  const bool half_empty = filled_end_ - taken_end_ <= options_.prefetch / 2;
  lock.unlock();
  if (half_empty) took_one_.notify_one();  // waking a thread takes longer than filling a small step
  return batch;
}

// The thread: at most `prefetch` steps ahead of those taken, so the step that is being read stays whole.
void Loader::fill_ahead() {
  name_trace_thread("loader");
  for (Index step = options_.steps.begin; step < options_.steps.end; ++step) {
    {
      std::unique_lock lock(mutex_);
      took_one_.wait(lock, [&] { return stopping_ || step < taken_end_ + options_.prefetch; });
      if (stopping_) return;
    }
    std::exception_ptr failure;
    try {
      StepBatch& batch = begin(step);
      for (Index i = 0; i < std::ssize(ids_); ++i) fill(batch, i);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      if (failure) {
        failure_ = failure;
      } else {
        filled_end_ = step + 1;
      }
    }
    filled_one_.notify_one();
    if (failure) return;
  }
}

StepBatch& Loader::begin(Index step) {
  StepBatch& batch = slot(step);
  batch.step = step;
  for (std::size_t replica = 0; replica < batch.rows.size(); ++replica) {
    batch.rows[replica] = sampler_.count(step, static_cast<Index>(replica));
  }
  for (Index i = 0; i < std::ssize(ids_); ++i) {
    ReplicaBatch& samples = at(batch.replicas, i);
    samples.rows = at(batch.rows, options_.replicas.begin + i);
    samples.ids = {};
  }
  records_.expect(step);
  return batch;
}

// Each thread fills the batches that it will train on, so that their pages are near it (first touch).
void Loader::fill_together(StepBatch& batch) {
  const Index threads = options_.team == nullptr ? 1 : options_.team->size();
  const auto fill_share = [&](int thread) {
    const Range share = split_evenly(std::ssize(ids_), threads, thread);
    for (Index i = share.begin; i < share.end; ++i) fill(batch, i);
  };
  if (threads == 1) return fill_share(0);
  options_.team->run(fill_share);
}

// The ids of the samples.
void Loader::choose(StepBatch& batch, Index i) {
  sampler_.ids(batch.step, options_.replicas.begin + i, at(ids_, i));
  at(batch.replicas, i).ids.add(at(ids_, i));
}

void Loader::fill(StepBatch& batch, Index i) {
  const TraceSpan span(TraceKind::kPrepare, options_.replicas.begin + i);
  const Index replica = options_.replicas.begin + i;
  ReplicaBatch& samples = at(batch.replicas, i);
  choose(batch, i);
  const std::vector<Index>& ids = at(ids_, i);
  const bool has_features = options_.part == RecordPart::kAll;
  Matrix x(samples.features.data(), samples.rows, has_features ? info_.features.size() : 0);
  Matrix targets(samples.targets.data(), samples.rows, info_.label_columns());
  records_.gather(ids, x, targets);
  Matrix labels = take_lengths(info_, targets, samples.lengths.span());
  if (weighs()) weigh(options_.weighing, info_, labels, samples.weights.span(), samples.present.span());
  if (!has_features) return;
  if (options_.augmenter != nullptr) {
    options_.augmenter->apply(x, {.ids = ids, .walk = sampler_.walk(batch.step, replica)}, normaliser_);
  } else {
    normaliser_.apply(x);
  }
}

void IdSums::add(std::span<const Index> ids) {
  for (const Index id : ids) add_one(id, 1, *this);
}

void IdSums::add(const IdSums& other) {
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] += other.numbers[i];
}

IdSums sums_of(Range ids, Index times) {
  IdSums sums;
  for (Index id = ids.begin; id < ids.end; ++id) add_one(id, times, sums);
  return sums;
}

std::string compare_sums(const IdSums& found, const IdSums& expected, Index epoch) {
  if (found == expected) return "";
  if (found.count() != expected.count()) {
    return fmt::format("data.audit: epoch {} used {} samples, expected {}", epoch, with_commas(found.count()),
                       with_commas(expected.count()));
  }
  return fmt::format(
      "data.audit: epoch {} used {} samples as it should, but not each as often as it should: their ids add "
      "up to {} and {}, expected {} and {}",
      epoch, with_commas(found.count()), found.numbers[1], found.numbers[2], expected.numbers[1],
      expected.numbers[2]);
}

Matrix take_lengths(const DatasetInfo& info, Matrix& labels, std::span<Scalar> lengths) {
  return info.has_lengths ? take_last_column(labels, lengths) : labels;
}

void weigh(const Weighing& weighing, const DatasetInfo& info, Matrix& labels, std::span<Scalar> weights,
           std::span<Scalar> present) {
  if (info.weighted) {
    take_last_column(labels, weights);
  } else if (weighing.has_weights(info)) {
    std::ranges::fill(weights, Scalar{1});
  }
  if (weighing.of_class.empty() && !weighing.masks) return;
  const bool by_position = !weighing.of_class.empty() && weighing.of_positions;
  for (Index row = 0; row < labels.rows(); ++row) {
    const std::span<const Scalar> targets(labels.data() + row * info.target_columns,
                                          static_cast<std::size_t>(info.target_columns));
    if (!weighing.of_class.empty() && !by_position)
      at(weights, row) *= at(weighing.of_class, class_of(targets));
    if (!weighing.has_shares()) continue;
    Scalar share = 0;
    for (const Scalar& target : targets) {
      if (!std::isnan(target)) share += by_position ? at(weighing.of_class, class_of({&target, 1})) : 1;
    }
    at(present, row) = share;
  }
}

}  // namespace lockstep
