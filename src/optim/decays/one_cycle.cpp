#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "decay_every.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class OneCycle final : public Decay {
 public:
  explicit OneCycle(const DecayContext& context)
      : start_(context.options.warmup_from),
        rise_(context.options.warmup_share),
        end_(context.options.end_lr / context.peak_lr) {
    const std::string& warmup = context.options.warmup;
    if (parse_duration("train.warmup", warmup).value == 0) return;
    throw ConfigError(fmt::format(
        "train.schedule = 'one_cycle' has a warm-up of its own, the share train.warmup_share of the "
        "run; remove train.warmup = {}",
        in_quotes(warmup)));
  }

  double factor(const Progress& now, const Progress& length) const override {
    const double done = share_done(now, length);
    if (done < rise_) return between(start_, 1, done / rise_);
    return between(1, end_, (done - rise_) / (1 - rise_));
  }

 private:
  // From one to the other along half a cosine.
  static double between(double from, double to, double share) {
    return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }

  double start_;
  double rise_;
  double end_;
};

}  // namespace

DecayEntry one_cycle_entry() {
  return {.name = "one_cycle",
          .help =
              "From warmup_from up to the peak over warmup_share of the run, then down to end_lr, both along "
              "half a cosine (Smith & Topin 2018); has no other warm-up",
          .options = {"train.warmup_share", "train.end_lr"},
          .make = [](const DecayContext& context) { return std::make_unique<OneCycle>(context); }};
}

}  // namespace lockstep
