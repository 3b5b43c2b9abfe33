#include <cmath>
#include <numbers>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

class Cosine final : public Decay {
 public:
  explicit Cosine(double end) : end_(end) {}

  double factor(const Progress& now, const Progress& length) const override {
    return end_ + (1 - end_) * (1 + std::cos(std::numbers::pi * share_done(now, length))) / 2;
  }

 private:
  double end_;
};

}  // namespace

DecayEntry cosine_entry() {
  return {.name = "cosine",
          .help = "From the peak to end_lr along half a cosine (Loshchilov & Hutter 2017, no restarts)",
          .options = {"train.end_lr"},
          .make = [](const DecayContext& context) {
            return std::make_unique<Cosine>(context.options.end_lr / context.peak_lr);
          }};
}

}  // namespace lockstep
