// The exchanges that make_reducer() and the algorithms choose from.
//
// Adding up over ranks by messages between pairs is planned as a value: for each rank a list of stages, a
// pure function of the rank, the number of ranks, and how many numbers there are. In each stage a rank sends
// one range of its numbers and receives another; between two ranks, messages match in the order of their
// stages. At the end each rank has the sums, and all have the same bits, since each number is added up on one
// rank only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// Each rank owns a slice of each bucket (Plan::slices), gets the others' partial sums of it, adds them and,
/// if asked, gives the result to all; else only the own slices of what finish() gives are sums. Ordered:
/// along the fixed tree, the same bits on any number of ranks. Native: rank by rank.
std::unique_ptr<Reducer> make_owner_reducer(const ExchangeRequest& request);

/// The owner reducer with messages that go through the codec of the options, which is not fp32: each rank has
/// one partial sum, and these are added rank by rank.
std::unique_ptr<Reducer> make_lossy_reducer(const ExchangeRequest& request);

/// A range of the numbers, to or from a peer.
struct Transfer {
  int peer = 0;
  Range range;
};

/// The two ranges do not overlap.
struct Stage {
  std::optional<Transfer> send;
  std::optional<Transfer> receive;
  Write write = Write::kReplace;  ///< received numbers replace the own ones, or are added to them
};

using MakeStages = std::function<std::vector<Stage>(int rank, int ranks, Index count)>;

/// Each rank talks to its two neighbours only: 2 (N - 1) stages, in which a rank sends 2 (N - 1) / N of the
/// numbers, the fewest possible (Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
/// of workstations").
std::vector<Stage> ring_stages(int rank, int ranks, Index count);

/// Halves are exchanged with ever nearer partners and added, then the sums come back the same way: 2 log2(N)
/// stages and as few numbers as the ring. Of N that is no power of two, pairs of ranks first fold into one
/// each: two stages and up to as many numbers more (Rabenseifner 2004, "Optimization of collective reduction
/// operations", section 3).
std::vector<Stage> rabenseifner_stages(int rank, int ranks, Index count);

/// A stage without what would be empty; nothing if both are.
void append_stage(std::vector<Stage>& stages, const Transfer& send, const Transfer& receive, Write write);

/// Numbers that are sent in all stages, and the most that are received in one of them to be added.
Index numbers_sent(const std::vector<Stage>& stages);
Index max_added(const std::vector<Stage>& stages);

/// *Collective* over `comm`. The exchange that carries out stages, in place, in the one partial sum that each
/// rank has. Nothing in it is collective after that: ranks may hand in buckets at different moments, as long
/// as the order is the same.
std::unique_ptr<Reducer> make_staged_reducer(Communicator& comm, const Plan& plan, const MakeStages& stages);

/// Bytes that `rank` sends in a staged reduction, and the memory that it takes.
AlgorithmCosts staged_costs(const Plan& plan, Index rank, const MakeStages& stages);

/// The entry of an algorithm that is nothing but stages.
AlgorithmEntry staged_entry(const std::string& name, const std::string& help, const MakeStages& stages);

}  // namespace lockstep
