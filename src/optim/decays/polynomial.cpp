#include <cmath>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class Polynomial final : public Decay {
 public:
  Polynomial(double power, double end) : power_(power), end_(end) {}

  double factor(const Progress& now, const Progress& length) const override {
    return end_ + (1 - end_) * std::pow(1 - share_done(now, length), power_);
  }

 private:
  double power_;
  double end_;
};

}  // namespace

DecayEntry polynomial_entry() {
  return {.name = "polynomial",
          .help = "From the peak to end_lr as (1 - share of the run)^decay_power",
          .options = {"train.decay_power", "train.end_lr"},
          .make = [](const DecayContext& context) {
            return std::make_unique<Polynomial>(context.options.decay_power,
                                                context.options.end_lr / context.peak_lr);
          }};
}

}  // namespace lockstep
