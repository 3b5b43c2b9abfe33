#include <algorithm>
#include <cmath>
#include <vector>

#include "decay_every.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

// Milestones are times of the run, so that train.warmup does not move them.
class Milestones final : public Decay {
 public:
  explicit Milestones(const DecayContext& context)
      : before_(context.warmup_end), factor_(context.options.decay_factor) {
    for (const std::string& text : context.options.milestones) {
      milestones_.push_back(parse_duration("train.milestones", text));
      if (milestones_.back().value > 0) continue;
      throw ConfigError(fmt::format(
          "train.milestones has {}, the start of the run; give times above 0, such as '30 epochs'",
          in_quotes(text)));
    }
    if (!milestones_.empty()) return;
    throw ConfigError(
        "train.schedule = 'milestones' has nothing to fall at; give train.milestones = [\"30 epochs\", \"60 "
        "epochs\"], with your times");
  }

  double factor(const Progress& now, const Progress&) const override {
    const Progress run{.steps = before_.steps + now.steps,
                       .samples = before_.samples + now.samples,
                       .epochs = before_.epochs + now.epochs};
    const auto passed = std::ranges::count_if(milestones_, [&](const Duration& milestone) {
      return milestone.measure(run) >= milestone.value * (1 - kBorderRounding);
    });
    return std::pow(factor_, static_cast<double>(passed));
  }

 private:
  Progress before_;  // the warm-up
  double factor_;
  std::vector<Duration> milestones_;
};

}  // namespace

DecayEntry milestones_entry() {
  return {.name = "milestones",
          .help = "The learning rate times decay_factor at each of train.milestones",
          .options = {"train.milestones", "train.decay_factor"},
          .make = [](const DecayContext& context) { return std::make_unique<Milestones>(context); }};
}

}  // namespace lockstep
