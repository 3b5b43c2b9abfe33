// The algorithm `mpi` leaves the sum to the MPI library: one MPI_Allreduce for each bucket. The library
// chooses the order of the additions, so its sum depends on the number of ranks. With ordered reduction the
// additions must follow the fixed tree; then the exchange is that of owner_reducer.cpp, messages between all
// pairs of ranks. Its buckets are nonblocking collectives. A trial of one of them says little about several
// during backward, which were slower than no overlap at all; so calibration leaves this algorithm out then
// (suffers_from_overlap).
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/costs.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

AlgorithmEntry mpi_entry() {
  return {.name = "mpi",
          .help =
              "MPI_Allreduce; with ordered reduction messages between all pairs, since MPI adds in an order "
              "of its own",
          .keeps_order = true,
          .suffers_from_overlap = true,
          .refusal = [](const Nodes&) { return std::string(); },
          .make =
              [](const AlgorithmContext& context) {
                return make_exact_reducer(context.comm, context.plan, context.reduction, Delivery::kAllReduce,
                                          context.overlaps);
              },
          .costs =
              [](const CostModelInput& question, Index rank) {
                const ExchangeCosts exchange(question.plan, question.options, Delivery::kAllReduce);
                return AlgorithmCosts{.held = exchange.held(rank),
                                      .sent = exchange.sent(rank),
                                      .traffic = exchange.traffic(rank, question.on_node())};
              }};
}

}  // namespace lockstep
