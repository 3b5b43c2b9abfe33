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

}  // namespace lockstep
