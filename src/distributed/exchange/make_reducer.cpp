// Which exchange by messages fits what is asked: the one place that chooses.
#include "lockstep/distributed/exchange/make_reducer.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

std::unique_ptr<Reducer> make_exact_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery, bool overlaps) {
  if (reduction == Reduction::kNative && delivery == Delivery::kAllReduce) {
    return make_native_reducer(comm, overlaps);
  }
  return make_owner_reducer(comm, plan, reduction, delivery);
}

std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery) {
  // With one rank nothing is sent, so nothing is lost.
  const bool exact = comm.size() == 1 || make_codec(options) == nullptr;
  if (!exact) return make_lossy_reducer(comm, plan, options, delivery);
  return make_exact_reducer(comm, plan, options.reduction, delivery, plan.buckets.size() > 1);
}

}  // namespace lockstep
