// Which exchange fits what is asked: the one place that chooses.
#include "lockstep/dist/reducer.h"
#include "lockstep/dist/wire.h"

namespace lockstep {

std::unique_ptr<Reducer> make_exact_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery) {
  if (reduction == Reduction::kNative && delivery == Delivery::kToAll) return make_native_reducer(comm, plan);
  return make_owner_reducer(comm, plan, reduction, delivery);
}

std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery) {
  // Of one rank alone nothing travels, so nothing is lost.
  if (comm.size() == 1 || make_wire(options) == nullptr) {
    return make_exact_reducer(comm, plan, options.reduction, delivery);
  }
  return make_lossy_reducer(comm, plan, options, delivery);
}

}  // namespace lockstep
