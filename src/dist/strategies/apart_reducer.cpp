#include "apart_reducer.h"

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

class ApartReducer final : public Reducer {
 public:
  ApartReducer(Communicator& comm, const Plan& plan, Reduction reduction)
      : plan_(plan),
        reduction_(reduction),
        hosted_(plan.hosted[static_cast<std::size_t>(comm.rank())]),
        reducer_(make_exact_reducer(comm, plan, reduction, Delivery::kToAll)) {}

  void begin_step(std::span<const Index> samples) override { reducer_->begin_step(samples); }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    const MergePlan plan = plan_sums(partial.nodes);
    std::vector<std::span<Scalar>> slices;
    for (const std::span<Scalar> piece : partial.sums) slices.push_back(part(piece, bucket.range));
    apply_merges(plan.merges, slices);
    sums_ = {.nodes = plan.nodes, .sums = {}};
    for (const Index survivor : plan.survivors) {
      sums_.sums.push_back(partial.sums[static_cast<std::size_t>(survivor)]);
    }
    if (sums_.sums.empty() && reduction_ == Reduction::kNative) sums_ = nothing(bucket.range);
    reducer_->bucket_ready(bucket, sums_);
  }

  void progress() override { reducer_->progress(); }
  std::span<Scalar> finish() override { return reducer_->finish(); }

 private:
  MergePlan plan_sums(std::span<const Range> pieces) const {
    if (reduction_ == Reduction::kOrdered) {
      return plan_merges(pieces, complete_nodes(plan_.replicas, hosted_));
    }
    MergePlan all;
    if (pieces.empty()) return all;
    for (Index piece = 1; piece < std::ssize(pieces); ++piece) all.merges.push_back({0, piece});
    all.survivors = {0};
    all.nodes = {hosted_};
    return all;
  }

  // No replica here has a piece: with native reduction the others still expect a contribution.
  PartialGrads nothing(Range range) {
    if (zeros_.size() == 0) zeros_ = AlignedBuffer<Scalar>(plan_.gradient_size);
    std::ranges::fill(part(zeros_.span(), range), Scalar{0});
    return {.nodes = {hosted_}, .sums = {zeros_.span()}};
  }

  const Plan& plan_;
  Reduction reduction_;
  Range hosted_;
  std::unique_ptr<Reducer> reducer_;
  PartialGrads sums_;
  AlignedBuffer<Scalar> zeros_;
};

}  // namespace

std::unique_ptr<Reducer> make_apart_reducer(Communicator& comm, const Plan& plan, Reduction reduction) {
  return std::make_unique<ApartReducer>(comm, plan, reduction);
}

}  // namespace lockstep
