#include "entries.h"
#include "lockstep/distributed/exchange/costs.h"
#include "lockstep/distributed/exchange/make_reducer.h"

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
                return AlgorithmCosts{.held = exchange.held(rank), .sent = exchange.sent(rank)};
              },
          .time = [](const TimeModelInput& question,
                     double bytes) { return reducer_time(question, Delivery::kAllReduce, bytes); }};
}

}  // namespace lockstep
