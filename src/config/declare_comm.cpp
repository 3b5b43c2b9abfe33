#include "declare_sections.h"

namespace lockstep {

void declare_comm(OptionList& list, CommOptions& comm) {
  list.begin_section(OnResume::kMayChange);
  list.option("comm.stall_seconds", comm.stall_seconds,
              "Seconds that a rank waits for others before one report names those that did not come; 0: "
              "automatic, 60 or 20 times the longest step so far, whichever is more",
              between(0, 1e6));
  list.option("comm.abort_seconds", comm.abort_seconds,
              "Seconds after that report before the whole job ends with exit code 7; 0: never",
              between(0, 1e6));
  list.option("comm.verify_every", comm.verify_every,
              "Steps between two comparisons of what all ranks must hold the same (weights, optimizer "
              "state), by a hash that takes about 0.1 ms for each MB; 0: never",
              at_least(0));
  list.option("comm.on_desync", comm.on_desync,
              "When they differ: stop ends the run (exit code 4); rebroadcast gives all ranks the state of "
              "the majority, warns and counts");
}

}  // namespace lockstep
