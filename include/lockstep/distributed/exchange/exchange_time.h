// How long an exchange takes, in the alpha-beta model with two levels (Thakur, Rabenseifner & Gropp 2005,
// "Optimization of collective communication operations in MPICH"): a message costs a latency and a time for
// each byte, inside a node as measured and between nodes as given; messages that leave a node at the same
// time share its link; each rank has one message under way.
#pragma once

#include <vector>

#include "lockstep/distributed/exchange/cluster.h"
#include "lockstep/distributed/exchange/costs.h"

namespace lockstep {

/// Seconds, the slowest rank's.
struct ExchangeSeconds {
  double ranks = 0;  ///< time in which ranks copy and add
  double link = 0;   ///< further time in which ranks could do something else
  double total() const { return ranks + link; }

  ExchangeSeconds operator+(const ExchangeSeconds& other) const {
    return {.ranks = ranks + other.ranks, .link = link + other.link};
  }
  ExchangeSeconds operator*(double factor) const { return {.ranks = ranks * factor, .link = link * factor}; }
};

/// The input of the time models: what the ranks of a cluster exchange by their plan.
struct TimeModelInput {
  const CostModelInput& costs;
  const Cluster& cluster;
};

/// The exchange of a step.
struct StepExchange {
  std::vector<ExchangeSeconds> buckets =
      {};  ///< exchanges of the plan's buckets, in order: each may leave while backward goes on
  ExchangeSeconds after = {};  ///< exchange that begins when backward is over
  double stepped = 1;          ///< times all weights that a rank's optimizer steps on
};

/// *Sums of so many bytes on every rank*, in place:
/// 2 (p - 1) stages of n / p bytes.
ExchangeSeconds ring_time(const Cluster& cluster, double bytes);
/// 2 log2(p) stages of n / 2, n / 4, ... bytes and back; of p that is no power of two, 2 n more.
ExchangeSeconds rabenseifner_time(const Cluster& cluster, double bytes);
/// log2(p) stages of n bytes.
ExchangeSeconds recursive_doubling_time(const Cluster& cluster, double bytes);
/// The fastest of these for the size, as a library that is well tuned chooses.
ExchangeSeconds library_time(const Cluster& cluster, double bytes);
/// In memory that the ranks of a node share; they bring `sums` partial sums each.
ExchangeSeconds shared_time(const Cluster& cluster, double bytes, double sums);

/// Each rank sends so many bytes in all, in `messages` equal ones to each of the others.
ExchangeSeconds pairwise_time(const Cluster& cluster, double bytes, double messages);

/// The most partial sums that a rank brings to the exchange of the plan.
Index max_partial_sums(const Plan& plan, Reduction reduction);

/// The exchange of make_reducer(), of so many bytes of the gradient.
ExchangeSeconds reducer_time(const TimeModelInput& question, Delivery delivery, double bytes);
/// An all-reduce between nodes in which each rank of a node exchanges a slice.
ExchangeSeconds time_between_nodes(const TimeModelInput& question, double bytes);

/// One round of messages between workers and servers (the last ranks), in one direction: `bytes` between a
/// worker and all servers, `messages` to or from each. A server's messages go one after the other.
ExchangeSeconds server_time(const TimeModelInput& question, double bytes, double messages);

/// The all-reduce of two numbers by which all ranks agree on a step.
ExchangeSeconds agreement_time(const Cluster& cluster);

/// A rank adds so many bytes to others.
ExchangeSeconds add_time(const Cluster& cluster, double bytes);

double bytes_of(const Bucket& bucket);

}  // namespace lockstep
