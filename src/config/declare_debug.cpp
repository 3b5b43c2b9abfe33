#include "declare_sections.h"

namespace lockstep {

void declare_debug(OptionList& list, DebugOptions& debug) {
  list.begin_section(OnResume::kMayChange);
  list.option("debug.fail_rank", debug.fail_rank, "Rank that fails on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.fail_step", debug.fail_step, "Step before which it fails", at_least(0));
  list.option("debug.delay_rank", debug.delay_rank, "Rank that is slowed down on purpose, for tests",
              at_least(0))
      .if_not_given("no rank");
  list.option("debug.hang_rank", debug.hang_rank, "Rank that hangs on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.hang_step", debug.hang_step, "Step before which it hangs", at_least(0));
  list.option("debug.hang", debug.hang,
              "How it hangs: loop computes for ever; skip leaves out a barrier that the others call");
  list.option("debug.flip_rank", debug.flip_rank,
              "Rank on which a bit of the weights is flipped on purpose, for tests", at_least(0))
      .if_not_given("no rank");
  list.option("debug.flip_step", debug.flip_step, "Step after which it is flipped", at_least(0));
  list.option("debug.nan_replica", debug.nan_replica, "Replica whose loss is NaN on purpose, for tests",
              at_least(0))
      .if_not_given("no replica");
  list.option("debug.nan_step", debug.nan_step, "First step in which it is", at_least(0));
  list.option("debug.nan_steps", debug.nan_steps, "In so many steps", at_least(1));
  list.option(
          "debug.ranks_per_node", debug.ranks_per_node,
          "Takes each node for several of so many ranks, to test on one machine what happens between nodes",
          at_least(1))
      .if_not_given("nodes as they are");
  list.option(
      "debug.server_mbit", debug.server_mbit,
      "Parameter servers behave as on a link of so many Mbit/s each, where workers are asynchronous; 0 "
      "is off",
      at_least(0));
  list.option("debug.delay_ms", debug.delay_ms, "Milliseconds that it sleeps in each step", at_least(0));
  list.option("debug.emulate_bf16", debug.emulate_bf16,
              "Run train.precision bf16 where the CPU or the back end has none, for tests and to measure "
              "accuracy: 3 to 20 times slower than fp32, and other last digits than those of a CPU that has "
              "it");
}

}  // namespace lockstep
