#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

// A step that begins on a border may compute as just before it: 0.3 / 0.1 is less than 3.
constexpr double kRounding = 1e-9;

class Step final : public Decay {
 public:
  explicit Step(const ScheduleOptions& options)
      : every_(parse_duration("train.decay_every", options.decay_every)), factor_(options.decay_factor) {
    if (every_.value > 0) return;
    throw ConfigError(
        fmt::format("train.decay_every = {} is no time at all; give a length above 0, such as '30 epochs'",
                    in_quotes(options.decay_every)));
  }

  double factor(const Progress& now, const Progress&) const override {
    return std::pow(factor_, std::floor(every_.measure(now) / every_.value + kRounding));
  }

 private:
  Duration every_;
  double factor_;
};

}  // namespace

DecayEntry step_entry() {
  return {.name = "step",
          .help = "The learning rate times decay_factor each decay_every",
          .options = {"train.decay_every", "train.decay_factor"},
          .make = [](const ScheduleOptions& options, double) { return std::make_unique<Step>(options); }};
}

}  // namespace lockstep
