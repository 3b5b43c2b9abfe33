// Every schedule of the learning rate after its warm-up, as a factor on the peak.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {
namespace {

// A step that begins on a border may compute as just before it: 0.3 / 0.1 is less than 3.
constexpr double kBorderRounding = 1e-9;

// train.decay_every. Errors: ConfigError, also for no time at all.
Duration parse_decay_every(const ScheduleOptions& options) {
  const Duration every = parse_duration("train.decay_every", options.decay_every);
  if (every.value > 0) return every;
  throw ConfigError("train.decay_every = {} is no time at all; give a length above 0, such as '30 epochs'",
                    in_quotes(options.decay_every));
}

// The share of `length` that lies behind `now`, in samples: 0 at the start, 1 from the end on.
double share_done(const Progress& now, const Progress& length) {
  if (length.samples <= 0) return 0;
  return std::min(1.0, static_cast<double>(now.samples) / static_cast<double>(length.samples));
}

double end_of(const DecayContext& context) {
  return context.options.end_lr / context.peak_lr;
}

// The way from one to the other along half a cosine.
double along_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

Decay make_constant(const DecayContext&) {
  return [](const Progress&, const Progress&) { return 1.0; };
}

Decay make_step(const DecayContext& context) {
  return [every = parse_decay_every(context.options), factor = context.options.decay_factor](
             const Progress& now, const Progress&) {
    return std::pow(factor, std::floor(every.measure(now) / every.value + kBorderRounding));
  };
}

// Milestones are times of the run, so that train.warmup does not move them.
Decay make_milestones(const DecayContext& context) {
  std::vector<Duration> milestones;
  for (const std::string& text : context.options.milestones) {
    milestones.push_back(parse_duration("train.milestones", text));
    if (milestones.back().value > 0) continue;
    throw ConfigError(
        "train.milestones has {}, the start of the run; give times above 0, such as '30 epochs'",
        in_quotes(text));
  }
  error_if(
      milestones.empty(),
      "train.schedule = 'milestones' has nothing to fall at; give train.milestones = [\"30 epochs\", \"60 "
      "epochs\"], with your times");
  return [milestones, warmup = context.warmup_end, factor = context.options.decay_factor](const Progress& now,
                                                                                          const Progress&) {
    const Progress run{.steps = warmup.steps + now.steps,
                       .samples = warmup.samples + now.samples,
                       .epochs = warmup.epochs + now.epochs};
    const auto passed = std::ranges::count_if(milestones, [&](const Duration& milestone) {
      return milestone.measure(run) >= milestone.value * (1 - kBorderRounding);
    });
    return std::pow(factor, static_cast<double>(passed));
  };
}

Decay make_exponential(const DecayContext& context) {
  return [every = parse_decay_every(context.options), factor = context.options.decay_factor](
             const Progress& now, const Progress&) {
    return std::pow(factor, every.measure(now) / every.value);
  };
}

Decay make_polynomial(const DecayContext& context) {
  return [power = context.options.decay_power, end = end_of(context)](const Progress& now,
                                                                      const Progress& length) {
    return end + (1 - end) * std::pow(1 - share_done(now, length), power);
  };
}

Decay make_cosine(const DecayContext& context) {
  return [end = end_of(context)](const Progress& now, const Progress& length) {
    return along_cosine(1, end, share_done(now, length));
  };
}

Decay make_one_cycle(const DecayContext& context) {
  const std::string& warmup = context.options.warmup;
  error_if(parse_duration("train.warmup", warmup).value != 0,
           "train.schedule = 'one_cycle' has a warm-up of its own, the share train.warmup_share of the "
           "run; remove train.warmup = {}",
           in_quotes(warmup));
  return [start = context.options.warmup_from, rise = context.options.warmup_share, end = end_of(context)](
             const Progress& now, const Progress& length) {
    const double done = share_done(now, length);
    if (done < rise) return along_cosine(start, 1, done / rise);
    return along_cosine(1, end, (done - rise) / (1 - rise));
  };
}

Decay make_inverse_sqrt(const DecayContext& context) {
  const Duration warmup = parse_duration("train.warmup", context.options.warmup);
  error_if(
      warmup.value == 0,
      "train.schedule = 'inverse_sqrt' falls as the root of the warm-up over the time since the start, but "
      "train.warmup is 0; give one, such as train.warmup = \"4000 steps\"");
  return [warmup](const Progress& now, const Progress&) {
    return std::sqrt(warmup.value / (warmup.value + warmup.measure(now)));
  };
}

Decay make_wsd(const DecayContext& context) {
  return [share = context.options.decay_share, power = context.options.decay_power, end = end_of(context)](
             const Progress& now, const Progress& length) {
    // The share of the fall that is left; above 1 before it.
    const double left = (1 - share_done(now, length)) / share;
    return end + (1 - end) * std::pow(std::min(1.0, left), power);
  };
}

}  // namespace

std::span<const DecayEntry> decay_catalog() {
  static const std::array kEntries{
      DecayEntry{.name = "constant",
                 .help = "The peak learning rate to the end",
                 .options = {},
                 .make = make_constant},
      DecayEntry{.name = "step",
                 .help = "The learning rate times decay_factor each decay_every",
                 .options = {"train.decay_every", "train.decay_factor"},
                 .make = make_step},
      DecayEntry{.name = "milestones",
                 .help = "The learning rate times decay_factor at each of train.milestones",
                 .options = {"train.milestones", "train.decay_factor"},
                 .make = make_milestones},
      DecayEntry{.name = "exponential",
                 .help = "Falls in every step, by decay_factor over each decay_every",
                 .options = {"train.decay_every", "train.decay_factor"},
                 .make = make_exponential},
      DecayEntry{.name = "polynomial",
                 .help = "From the peak to end_lr as (1 - share of the run)^decay_power",
                 .options = {"train.decay_power", "train.end_lr"},
                 .make = make_polynomial},
      DecayEntry{
          .name = "cosine",
          .help = "From the peak to end_lr along half a cosine (Loshchilov & Hutter 2017, no restarts)",
          .options = {"train.end_lr"},
          .make = make_cosine},
      DecayEntry{
          .name = "one_cycle",
          .help = "From warmup_from up to the peak over warmup_share of the run, then down to end_lr, both "
                  "along half a cosine (Smith & Topin 2018); has no other warm-up",
          .options = {"train.warmup_share", "train.end_lr"},
          .make = make_one_cycle},
      DecayEntry{.name = "inverse_sqrt",
                 .help =
                     "The peak times the root of warmup / time since the start (Vaswani et al. 2017); needs "
                     "train.warmup",
                 .options = {},
                 .make = make_inverse_sqrt},
      DecayEntry{.name = "wsd",
                 .help = "Warm-up, stable, decay: the peak, then over the last decay_share down to end_lr as "
                         "(share left of it)^decay_power (Hu et al. 2024)",
                 .options = {"train.decay_share", "train.decay_power", "train.end_lr"},
                 .make = make_wsd},
      // The falls are the trainer's, since evaluations decide them.
      DecayEntry{.name = "plateau",
                 .help =
                     "The learning rate times decay_factor whenever the validation set gets no better for "
                     "plateau_patience; never below end_lr",
                 .options = {"train.plateau_patience", "train.plateau_min_delta", "train.decay_factor",
                             "train.end_lr"},
                 .make = make_constant,
                 .follows_evaluations = true}};
  return kEntries;
}

}  // namespace lockstep
