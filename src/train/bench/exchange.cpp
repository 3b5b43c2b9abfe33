#include <unistd.h>

#include <atomic>
#include <thread>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/exchange/exchange_trial.h"
#include "lockstep/train/bench/bench.h"
#include "timing.h"

namespace lockstep {
namespace {

Index scalars(Index bytes) {
  return bytes / Index{sizeof(Scalar)};
}

Plan one_replica_a_rank(Communicator& comm) {
  Plan plan;
  plan.world = plan.replicas = comm.size();
  for (Index rank = 0; rank < comm.size(); ++rank) plan.hosted.push_back({rank, rank + 1});
  return plan;
}

}  // namespace

double measure_all_reduce(Communicator& comm, Index bytes) {
  AlignedBuffer<Scalar> values(scalars(bytes));
  return median_seconds(comm, [&] { comm.all_reduce_sum(as_buffer(values.span())); });
}

// With an odd number of ranks the last one has no neighbour.
double measure_message(Communicator& node, Index bytes) {
  AlignedBuffer<Scalar> from(scalars(bytes));
  AlignedBuffer<Scalar> to(scalars(bytes));
  const int peer = node.rank() ^ 1;
  return median_seconds(node, [&] {
    if (peer >= node.size()) return;
    const Send send{peer, as_buffer(std::span<const Scalar>(from.span()))};
    const Receive receive{peer, as_buffer(to.span())};
    node.start_exchange(0, std::span(&send, 1), std::span(&receive, 1))->wait();
  });
}

double measure_shared_sum(Communicator& node, Index bytes) {
  const Plan plan = one_replica_a_rank(node);
  const AlgorithmEntry& shared = find_entry(algorithm_catalog(), "algorithm", "shared");
  ExchangeTrial trial({.comm = node, .plan = plan, .overlaps = false}, shared, scalars(bytes));
  return median_seconds(node, [&] { trial.run(); });
}

// The two write to it in turn. Where they share a core, who waits has to leave it to the other.
double measure_cache_line(Communicator& node) {
  constexpr Index kTrips = 100;
  constexpr int kLooks = 1000;
  const std::unique_ptr<SharedWindow> window = node.shared_window(kAlignmentBytes);
  const int peer = node.rank() ^ 1;
  const int first = std::min(node.rank(), peer);
  const std::atomic_ref turn(*reinterpret_cast<Index*>(window->part(first).data()));
  Index own_turn = node.rank() - first;
  const double seconds = median_seconds(node, [&] {
    if (peer >= node.size()) return;
    for (Index trip = 0; trip < kTrips; ++trip) {
      const auto may_go = [&] { return turn.load(std::memory_order_acquire) == own_turn; };
      for (int look = 1; !may_go(); look = look % kLooks + 1) {
        if (look == kLooks) std::this_thread::yield();
      }
      turn.store(own_turn + 1, std::memory_order_release);
      own_turn += 2;
    }
  });
  return seconds / kTrips;
}

Index count_cores() {
  return std::max<Index>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

std::vector<AlgorithmRate> measure_algorithms(Communicator& comm, const DistOptions& options,
                                              const Plan& plan, Index ranks_per_node, Index bytes) {
  constexpr double kBudgetSeconds = 0.03;
  const AlgorithmContext context{
      .comm = comm, .plan = plan, .reduction = options.reduction, .ranks_per_node = ranks_per_node};
  DistOptions any = options;
  any.strategy = "allreduce";
  any.algorithm = kAutoAlgorithm;
  std::vector<AlgorithmRate> rates;
  for (const AlgorithmEntry* entry : possible_algorithms(any, look_at_nodes(comm, ranks_per_node))) {
    ExchangeTrial trial(context, *entry, bytes / Index{sizeof(Scalar)});
    rates.push_back({.name = entry->name,
                     .bytes = bytes,
                     .seconds = median_seconds(
                         comm, [&] { trial.run(); }, kBudgetSeconds)});
  }
  return rates;
}

}  // namespace lockstep
