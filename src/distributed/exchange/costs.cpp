#include "lockstep/distributed/exchange/costs.h"

#include <array>

#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

constexpr Index kScalarBytes = sizeof(Scalar);

// The partial sums that a rank brings to the exchange.
Index partial_sums(const Plan& plan, Reduction reduction, Index rank) {
  const Range hosted = plan.hosted_by(rank);
  if (hosted.empty()) return 0;
  if (reduction == Reduction::kNative) return 1;
  return static_cast<Index>(complete_subtrees(plan.replicas, hosted).size());
}

}  // namespace

Index CostModelInput::optimizer_bytes() const {
  const std::array all{Range{0, plan.loss_offset}};
  return optimizer.bytes(all, plan.threads);
}

Index CostModelInput::gradient_bytes(Index rank) const {
  if (plan.hosted_by(rank).empty()) return 0;
  return arenas_needed(plan, rank, sums, interleaved) * (plan.gradient_size - plan.divided_size()) *
         kScalarBytes;
}

std::vector<RankCosts> each_rank(const CostModelInput& question,
                                 const std::function<RankCosts(Index rank)>& costs) {
  std::vector<RankCosts> all;
  for (Index rank = 0; rank < question.plan.world; ++rank) all.push_back(costs(rank));
  return all;
}

ExchangeCosts::ExchangeCosts(const Plan& plan, const DistOptions& options, Delivery delivery)
    : plan_(plan),
      reduction_(options.reduction),
      to_all_(delivery == Delivery::kAllReduce),
      error_feedback_(options.error_feedback),
      lossy_(is_lossy(options)),
      by_mpi_(!lossy_ && to_all_ && reduction_ == Reduction::kNative),
      message_(message_bytes(plan, options) - plan.divided_size() * kScalarBytes),
      all_partial_sums_(0) {
  for (Index rank = 0; rank < plan.world; ++rank) all_partial_sums_ += partial_sums(plan, reduction_, rank);
}

// Bytes of the gradient arena that `rank` owns, of what is exchanged.
Index ExchangeCosts::owned(Index rank) const {
  Index count = 0;
  for (const std::vector<Range>& slices : plan_.slices) count += at(slices, rank).size();
  for (const DividedTensor& tensor : plan_.divided) count -= at(tensor.weights, rank).size();
  return count * kScalarBytes;
}

// About the slices of a rank, from one other.
Index ExchangeCosts::own_message(Index rank) const {
  const auto arena = static_cast<double>((plan_.gradient_size - plan_.divided_size()) * kScalarBytes);
  const double share = static_cast<double>(owned(rank)) / arena;
  return static_cast<Index>(share * static_cast<double>(message_));
}

Index ExchangeCosts::held(Index rank) const {
  if (plan_.world == 1 || by_mpi_) return 0;
  const Index arena = plan_.gradient_size * kScalarBytes;
  const Index mine = partial_sums(plan_, reduction_, rank);
  if (!lossy_) {
    return arena - plan_.divided_elsewhere(rank) * kScalarBytes + (all_partial_sums_ - mine) * owned(rank);
  }
  // The sum; a message to each owner; those of the other ranks about the own slice; what was lost.
  const Index lost = error_feedback_ ? mine * arena + (to_all_ ? owned(rank) : 0) : 0;
  return arena + message_ + (all_partial_sums_ - mine) * own_message(rank) + lost;
}

Index ExchangeCosts::sent(Index rank) const {
  if (plan_.world == 1) return 0;
  if (by_mpi_) return 2 * (message_ - message_ / plan_.world);
  const Index own = own_message(rank);
  return partial_sums(plan_, reduction_, rank) * (message_ - own) + (to_all_ ? own * (plan_.world - 1) : 0);
}

}  // namespace lockstep
