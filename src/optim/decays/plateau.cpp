#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

// The falls are the trainer's, since evaluations decide them.
class BeforeTheFalls final : public Decay {
 public:
  double factor(const Progress&, const Progress&) const override { return 1; }
};

}  // namespace

DecayEntry plateau_entry() {
  return {
      .name = "plateau",
      .help =
          "The learning rate times decay_factor whenever the validation set gets no better for "
          "plateau_patience; never below end_lr",
      .options = {"train.plateau_patience", "train.plateau_min_delta", "train.decay_factor", "train.end_lr"},
      .make = [](const DecayContext&) { return std::make_unique<BeforeTheFalls>(); },
      .follows_evaluations = true};
}

}  // namespace lockstep
