#include "lockstep/distributed/exchange/costs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

constexpr Index kScalarBytes = sizeof(Scalar);

// Times that so many must be halved to be one.
double halvings(Index count) {
  return std::countr_zero(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

Messages sum_of(const Messages& a, const Messages& b) {
  return {.count = a.count + b.count, .bytes = a.bytes + b.bytes};
}

}  // namespace

Traffic Traffic::operator+(const Traffic& other) const {
  return {.near = sum_of(near, other.near),
          .far = sum_of(far, other.far),
          .meetings = meetings + other.meetings,
          .added = added + other.added};
}

Traffic Traffic::operator*(double factor) const {
  return {.near = {.count = factor * near.count, .bytes = factor * near.bytes},
          .far = {.count = factor * far.count, .bytes = factor * far.bytes},
          .meetings = factor * meetings,
          .added = factor * added};
}

Traffic in_parts(Traffic traffic, Index parts) {
  for (double* count : {&traffic.near.count, &traffic.far.count, &traffic.meetings}) {
    *count *= static_cast<double>(parts);
  }
  return traffic;
}

Peers peers_of(const Plan& plan, Index rank, Index on_node) {
  Range peers{0, plan.world};
  if (plan.servers > 0) {
    peers = rank < plan.workers() ? Range{plan.workers(), plan.world} : Range{0, plan.workers()};
  }
  const Index first = rank / on_node * on_node;
  const Range near = intersect(peers, {first, first + on_node});
  const Index self = peers.contains(rank) ? 1 : 0;
  return {.all = peers.size() - self, .near = std::max<Index>(near.size(), 0) - self};
}

Traffic to_each(const Peers& peers, double messages, double bytes) {
  if (peers.all == 0) return {};
  const auto near = static_cast<double>(peers.near);
  const auto far = static_cast<double>(peers.all - peers.near);
  const double each = bytes / (near + far);
  return {.near = {.count = messages * near, .bytes = each * near},
          .far = {.count = messages * far, .bytes = each * far}};
}

Traffic library_sum(Index ranks, Index on_node, double bytes) {
  const Index nodes = divide_up(ranks, on_node);
  const double far = 2 * halvings(nodes);
  const double left = 2 * bytes / static_cast<double>(nodes);
  return {
      .near = {.count = 2 * halvings(ranks) - far, .bytes = left - 2 * bytes / static_cast<double>(ranks)},
      .far = {.count = far, .bytes = 2 * bytes - left}};
}

// A rank reads as many bytes as there are in the partial sums of its own, and writes as many as in one.
Traffic shared_sum(double bytes, Index sums) {
  return {.meetings = 1, .added = bytes * static_cast<double>(sums + 1) / 2};
}

// So little is added up by doubling alone.
Traffic agreement(Index ranks, Index on_node) {
  return library_sum(ranks, on_node, 2 * sizeof(double)) * 0.5;
}

Index partial_sums(const Plan& plan, Reduction reduction, Index rank) {
  const Range hosted = plan.hosted_by(rank);
  if (hosted.empty()) return 0;
  if (reduction == Reduction::kNative) return 1;
  return static_cast<Index>(complete_subtrees(plan.replicas, hosted).size());
}

std::vector<Index> CostModelInput::nodes() const {
  return node_sizes.empty() ? std::vector{plan.world} : node_sizes;
}

Index CostModelInput::on_node() const {
  return node_sizes.empty() ? plan.world : std::ranges::max(node_sizes);
}

Index CostModelInput::weights_bytes() const {
  return plan.loss_offset * kScalarBytes;
}

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
  const Range asked = question.ranks.empty() ? Range{0, question.plan.world} : question.ranks;
  for (Index rank = asked.begin; rank < asked.end; ++rank) all.push_back(costs(rank));
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

// A server receives what the workers send.
Traffic ExchangeCosts::traffic(Index rank, Index on_node) const {
  if (plan_.world == 1) return {};
  const bool serves = rank >= plan_.workers();
  const Index bytes = serves ? sent(0) * plan_.workers() / plan_.servers : sent(rank);
  const Index messages = partial_sums(plan_, reduction_, serves ? 0 : rank) + (to_all_ ? 1 : 0);
  const Traffic whole = by_mpi_ ? library_sum(plan_.world, on_node, static_cast<double>(message_))
                                : to_each(peers_of(plan_, rank, on_node), static_cast<double>(messages),
                                          static_cast<double>(bytes));
  return in_parts(whole, std::ranges::count(plan_.buckets, false, &Bucket::divided));
}

}  // namespace lockstep
