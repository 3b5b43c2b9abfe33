// Prints the time of an exchange of gradients for a few sizes, with each algorithm in turn: medians in
// microseconds. Under mpiexec; options: ordered, and ranks taken for a node.
//   mpiexec -n 2 exchange_bench [native|ordered] [ranks per node]
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/session.h"
#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {
namespace {

constexpr int kRounds = 9;
constexpr double kSecondsPerRound = 0.03;

// One bucket of `count` numbers, one replica a rank.
struct Bench {
  Communicator& comm;
  const AlgorithmEntry& entry;
  Plan plan = {};
  std::unique_ptr<Reducer> reducer = {};
  AlignedBuffer<Scalar> own = {};
  PartialGrads partial = {};
  std::vector<Index> samples = {};
  std::vector<double> seconds = {};

  void start(Index count, Reduction reduction, Index ranks_per_node) {
    plan.world = plan.replicas = comm.size();
    plan.gradient_size = plan.loss_offset = count;
    plan.buckets = {{.range = {0, count}}};
    plan.slices.emplace_back();
    for (Index rank = 0; rank < comm.size(); ++rank) {
      plan.hosted.push_back({rank, rank + 1});
      plan.slices.front().push_back(split_evenly(count, comm.size(), rank, kAlignment));
    }
    samples.assign(static_cast<std::size_t>(comm.size()), 1);
    const DistOptions options{.reduction = reduction};
    reducer = entry.make({.comm = comm,
                          .plan = plan,
                          .options = options,
                          .ranks_per_node = ranks_per_node,
                          .overlaps = false});
    std::span<Scalar> arena = reducer->shared_arena();
    if (arena.empty()) {
      own = AlignedBuffer<Scalar>(count);
      arena = own.span();
    }
    partial = {.subtrees = {plan.hosted_by(comm.rank())}, .sums = {arena}};
  }

  double run(int times) {
    comm.barrier();
    const Stopwatch watch;
    for (int i = 0; i < times; ++i) {
      reducer->begin_step(samples);
      reducer->bucket_ready(plan.buckets.front(), partial);
      reducer->finish();
    }
    return watch.seconds() / times;
  }
};

void measure(Communicator& comm, Index count, Reduction reduction, Index ranks_per_node) {
  const Nodes nodes = look_at_nodes(comm, ranks_per_node);
  std::deque<Bench> benches;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(reduction)) continue;
    if (!entry.refusal(nodes).empty()) continue;
    benches.push_back({comm, entry});
    benches.back().start(count, reduction, ranks_per_node);
    benches.back().run(2);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Bench& bench : benches) {
      Index times = std::clamp<Index>(static_cast<Index>(kSecondsPerRound / bench.run(1)), 1, 1000);
      comm.broadcast(as_buffer(std::span(&times, 1)), 0);
      bench.seconds.push_back(bench.run(static_cast<int>(times)));
    }
  }
  if (comm.rank() != 0) return;
  fmt::print("{:>10} KiB", count * Index{sizeof(Scalar)} / 1024);
  for (Bench& bench : benches) {
    std::ranges::sort(bench.seconds);
    fmt::print("  {} {:.1f} ({:.1f}..{:.1f})", bench.entry.name, 1e6 * bench.seconds[kRounds / 2],
               1e6 * bench.seconds.front(), 1e6 * bench.seconds.back());
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  const bool ordered = argc > 1 && std::string(argv[1]) == "ordered";
  const Index ranks_per_node = argc > 2 ? std::stoll(argv[2]) : 0;
  return run_session([&](Communicator& comm) {
    for (const Index kib : {16, 256, 1024, 4096, 16384, 65536})
      measure(comm, kib * 256, ordered ? Reduction::kOrdered : Reduction::kNative, ranks_per_node);
    return 0;
  });
}
