#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class InverseSqrt final : public Decay {
 public:
  explicit InverseSqrt(const ScheduleOptions& options)
      : warmup_(parse_duration("train.warmup", options.warmup)) {
    if (warmup_.value > 0) return;
    throw ConfigError(
        "train.schedule = 'inverse_sqrt' falls as the root of the warm-up over the time since the start, but "
        "train.warmup is 0; give one, such as train.warmup = \"4000 steps\"");
  }

  double factor(const Progress& now, const Progress&) const override {
    return std::sqrt(warmup_.value / (warmup_.value + warmup_.measure(now)));
  }

 private:
  Duration warmup_;
};

}  // namespace

DecayEntry inverse_sqrt_entry() {
  return {.name = "inverse_sqrt",
          .help =
              "The peak times the root of warmup / time since the start (Vaswani et al. 2017); needs "
              "train.warmup",
          .options = {},
          .make = [](const DecayContext& context) { return std::make_unique<InverseSqrt>(context.options); }};
}

}  // namespace lockstep
