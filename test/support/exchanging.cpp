#include "support/exchanging.h"

#include "lockstep/math/fixed_tree.h"

namespace lockstep::test {
namespace {

Plan plan_of(const ExchangeCase& one, int ranks) {
  Plan plan;
  plan.world = ranks;
  plan.replicas = one.replicas_per_rank * ranks + (ranks > 1 ? 1 : 0);
  plan.gradient_size = one.borders.back();
  plan.loss_offset = plan.gradient_size;
  for (Index rank = 0; rank < ranks; ++rank) plan.hosted.push_back(split_evenly(plan.replicas, ranks, rank));
  for (std::size_t i = one.borders.size() - 1; i > 0; --i) {
    const Range range{one.borders[i - 1], one.borders[i]};
    plan.buckets.push_back({.range = range});
    std::vector<Range> slices;
    for (Index rank = 0; rank < ranks; ++rank) {
      const Range slice = split_evenly(range.size(), ranks, rank);
      slices.push_back({range.begin + slice.begin, range.begin + slice.end});
    }
    plan.slices.push_back(slices);
  }
  return plan;
}

// Sines from a table, whose length no number here divides: most of the time here would go to making them.
Scalar gradient(Index replica, Index step, Index i) {
  constexpr Index kSines = 4093;
  static const std::vector<Scalar> kTable = [] {
    std::vector<Scalar> table;
    for (Index at = 0; at < kSines; ++at)
      table.push_back(static_cast<Scalar>(std::sin(0.37 * static_cast<double>(at))));
    return table;
  }();
  return at(kTable, (replica * 131 + step * 17 + i) % kSines);
}

// In every third step half of the replicas have nothing; a rank may then have nothing at all.
std::vector<Index> samples_of(const Plan& plan, Index step) {
  std::vector<Index> samples(static_cast<std::size_t>(plan.replicas), 1);
  if (step % 3 != 2) return samples;
  for (std::size_t replica = 1; replica < samples.size(); replica += 2) samples[replica] = 0;
  if (samples.size() > 3) samples[2] = 0;
  return samples;
}

}  // namespace

Exchanging::Exchanging(Communicator& comm, const ExchangeCase& one, MakeExchange make)
    : comm_(comm), ordered_(one.options.reduction == Reduction::kOrdered), plan_(plan_of(one, comm.size())) {
  const Range hosted = plan_.hosted_by(comm.rank());
  const Index arenas = ordered_ ? hosted.size() : 1;
  reducer_ = make({.comm = comm,
                   .plan = plan_,
                   .options = one.options,
                   .algorithm = one.options.algorithm,
                   .gradient_arenas = arenas,
                   .ranks_per_node = one.ranks_per_node});
  for (Index i = 0; i < arenas; ++i) {
    const std::span<Scalar> shared = reducer_->shared_arena();
    arenas_.push_back(shared.empty() ? own_.emplace_back(plan_.gradient_size).span() : shared);
  }
}

std::vector<Scalar> Exchanging::step(Index step) {
  const std::vector<Index> samples = samples_of(plan_, step);
  const PartialGrads partial = fill(samples, step);
  const std::vector<double> sums = expected(step);
  reducer_->begin_step(samples);
  for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
    const auto moment = (static_cast<Index>(i) * 7 + comm_.rank() * 5 + step * 3) % 4;
    if (moment == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    reducer_->bucket_ready(plan_.buckets[i], partial);
    if (moment == 1) {
      const std::size_t complete = reducer_->progress();
      EXPECT_LE(complete, i + 1);
      for (std::size_t bucket = 0; bucket < complete; ++bucket) expect_sum(bucket, sums);
    }
  }
  const std::span<Scalar> sum = reducer_->finish();
  EXPECT_EQ(reducer_->progress(), plan_.buckets.size());
  EXPECT_EQ(reducer_->sum().data(), sum.data());
  std::vector<Scalar> result(sum.begin(), sum.end());
  std::ranges::fill(sum, Scalar{-1e9F});  // it is this rank's: nobody else may see it
  return result;
}

// A bucket that is said to be complete.
void Exchanging::expect_sum(std::size_t bucket, const std::vector<double>& sums) {
  const Range range = plan_.buckets[bucket].range;
  for (Index i = range.begin; i < range.end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_NEAR(reducer_->sum()[at], sums[at], 2e-5) << "bucket " << bucket << ", number " << i;
  }
}

std::vector<double> Exchanging::expected(Index step) const {
  const std::vector<Index> samples = samples_of(plan_, step);
  std::vector<double> sum(static_cast<std::size_t>(plan_.gradient_size));
  for (Index replica = 0; replica < plan_.replicas; ++replica) {
    if (at(samples, replica) == 0) continue;
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<double>(gradient(replica, step, static_cast<Index>(i)));
  }
  return sum;
}

// Ordered: an arena for each replica with samples, added to complete nodes; native: one.
PartialGrads Exchanging::fill(const std::vector<Index>& samples, Index step) {
  const Range hosted = plan_.hosted_by(comm_.rank());
  std::vector<Range> leaves;
  std::vector<std::span<Scalar>> pieces;
  std::ranges::fill(arenas_.front(), Scalar{0});
  for (Index replica = hosted.begin; replica < hosted.end; ++replica) {
    if (at(samples, replica) == 0) continue;
    const std::span<Scalar> arena = arenas_[ordered_ ? pieces.size() : 0];
    for (std::size_t i = 0; i < arena.size(); ++i) {
      const Scalar value = gradient(replica, step, static_cast<Index>(i));
      arena[i] = ordered_ ? value : arena[i] + value;
    }
    leaves.push_back({replica, replica + 1});
    pieces.push_back(arena);
  }
  if (!ordered_) return {.subtrees = {hosted}, .sums = {arenas_.front()}};
  const MergePlan merged = plan_merges(leaves, complete_subtrees(plan_.replicas, hosted));
  apply_merges(merged.merges, pieces);
  PartialGrads partial{.subtrees = merged.subtrees, .sums = {}};
  for (const Index survivor : merged.survivors) partial.sums.push_back(at(pieces, survivor));
  return partial;
}

}  // namespace lockstep::test
