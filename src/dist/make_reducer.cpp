// Which exchange by messages fits what is asked: the one place that chooses.
#include "lockstep/dist/reducer.h"
#include "lockstep/dist/wire.h"

namespace lockstep {

std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery) {
  // Of one rank alone nothing travels, so nothing is lost.
  const bool exact = comm.size() == 1 || make_wire(options) == nullptr;
  if (!exact) return make_lossy_reducer(comm, plan, options, delivery);
  if (options.reduction == Reduction::kNative && delivery == Delivery::kToAll) {
    return make_native_reducer(comm, plan.buckets.size() > 1);
  }
  return make_owner_reducer(comm, plan, options.reduction, delivery);
}

}  // namespace lockstep
