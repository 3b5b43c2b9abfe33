#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class Constant final : public Decay {
 public:
  double factor(const Progress&, const Progress&) const override { return 1; }
};

}  // namespace

DecayEntry constant_entry() {
  return {.name = "constant",
          .help = "The peak learning rate to the end",
          .options = {},
          .make = [](const DecayContext&) { return std::make_unique<Constant>(); }};
}

}  // namespace lockstep
