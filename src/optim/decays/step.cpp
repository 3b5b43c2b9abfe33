#include <cmath>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class Step final : public Decay {
 public:
  explicit Step(const ScheduleOptions& options)
      : every_(parse_decay_every(options)), factor_(options.decay_factor) {}

  double factor(const Progress& now, const Progress&) const override {
    return std::pow(factor_, std::floor(every_.measure(now) / every_.value + kBorderRounding));
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
          .make = [](const DecayContext& context) { return std::make_unique<Step>(context.options); }};
}

}  // namespace lockstep
