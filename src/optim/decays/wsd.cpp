#include <algorithm>
#include <cmath>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class WarmupStableDecay final : public Decay {
 public:
  explicit WarmupStableDecay(const DecayContext& context)
      : share_(context.options.decay_share),
        power_(context.options.decay_power),
        end_(context.options.end_lr / context.peak_lr) {}

  double factor(const Progress& now, const Progress& length) const override {
    // The share of the fall that is left; above 1 before it.
    const double left = (1 - share_done(now, length)) / share_;
    return end_ + (1 - end_) * std::pow(std::min(1.0, left), power_);
  }

 private:
  double share_;
  double power_;
  double end_;
};

}  // namespace

DecayEntry wsd_entry() {
  return {.name = "wsd",
          .help =
              "Warm-up, stable, decay: the peak, then over the last decay_share down to end_lr as (share "
              "left of it)^decay_power (Hu et al. 2024)",
          .options = {"train.decay_share", "train.decay_power", "train.end_lr"},
          .make = [](const DecayContext& context) { return std::make_unique<WarmupStableDecay>(context); }};
}

}  // namespace lockstep
