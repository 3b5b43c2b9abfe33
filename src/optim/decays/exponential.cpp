#include <cmath>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class Exponential final : public Decay {
 public:
  explicit Exponential(const ScheduleOptions& options)
      : every_(parse_decay_every(options)), factor_(options.decay_factor) {}

  double factor(const Progress& now, const Progress&) const override {
    return std::pow(factor_, every_.measure(now) / every_.value);
  }

 private:
  Duration every_;
  double factor_;
};

}  // namespace

DecayEntry exponential_entry() {
  return {.name = "exponential",
          .help = "Falls in every step, by decay_factor over each decay_every",
          .options = {"train.decay_every", "train.decay_factor"},
          .make = [](const DecayContext& context) { return std::make_unique<Exponential>(context.options); }};
}

}  // namespace lockstep
