#include "lockstep/optim/schedule.h"

#include "lockstep/base/errors.h"
#include "support/config_text.h"
#include "support/error_text.h"
#include "support/torch_references.h"

namespace lockstep::schedule_test {

constexpr Index kBatch = 4;
constexpr Index kStepsPerEpoch = 10;

Progress at_step(Index step) {
  return {.steps = step,
          .samples = step * kBatch,
          .epochs = static_cast<double>(step) / static_cast<double>(kStepsPerEpoch)};
}

ScheduleOptions read_options(const nlohmann::json& reference) {
  ScheduleOptions options = test::train_config(reference.at("options")).schedule;
  options.schedule = reference.at("schedule");
  return options;
}

TEST(Schedule, EqualsPyTorchOver50Steps) {
  for (const nlohmann::json& reference : test::torch_references("schedules")) {
    SCOPED_TRACE(reference.at("schedule").dump() + " " + reference.at("options").dump());
    const auto expected = reference.at("lrs").get<std::vector<double>>();
    const auto steps = std::ssize(expected);
    const Schedule schedule(read_options(reference), at_step(steps), kBatch);
    for (Index step = 0; step < steps; ++step) {
      const double lr = at(expected, step);
      EXPECT_NEAR(schedule.lr(at_step(step)), lr, 1e-5 * lr) << "step " << step;
    }
  }
}

TEST(Schedule, EveryDecayHasAReference) {
  const nlohmann::json references = test::torch_references("schedules");
  for (const DecayEntry& entry : decay_catalog()) {
    const auto names_it = [&](const nlohmann::json& reference) {
      return reference.at("schedule") == entry.name;
    };
    EXPECT_TRUE(std::ranges::any_of(references, names_it)) << entry.name;
  }
}

TEST(Schedule, BordersThatRoundingWouldMissAreMet) {
  ScheduleOptions options{.schedule = "step", .decay_every = "0.1 epochs", .decay_factor = 0.5};
  const Schedule schedule(options, at_step(10), kBatch);
  for (Index step = 0; step < 10; ++step)
    EXPECT_DOUBLE_EQ(schedule.lr(at_step(step)), 0.01 * std::pow(0.5, step)) << "step " << step;
}

// Two steps of 4 samples and one of 2: before the last, 4 of 5 parts of the run are done, not 2 of 3.
TEST(Schedule, DecaysOverTheRunGoBySamplesNotSteps) {
  const Progress whole{.steps = 3, .samples = 10, .epochs = 1};
  const auto lr = [&](const std::string& name, const Progress& now) {
    ScheduleOptions options{.lr = 1, .schedule = name};
    return Schedule(options, whole, kBatch).lr(now);
  };
  const Progress last{.steps = 2, .samples = 8, .epochs = 0.8};
  EXPECT_DOUBLE_EQ(lr("polynomial", last), 0.2);
  EXPECT_DOUBLE_EQ(lr("cosine", last), (1 + std::cos(0.8 * std::numbers::pi)) / 2);
  for (const std::string name : {"polynomial", "cosine"}) {
    EXPECT_DOUBLE_EQ(lr(name, {}), 1) << name;
    EXPECT_DOUBLE_EQ(lr(name, whole), 0) << name;
  }
}

// Steps of unequal size: the end of the warm-up falls between what its steps, samples and epochs say.
TEST(Schedule, TheRateNeverExceedsThePeak) {
  for (const DecayEntry& entry : decay_catalog()) {
    ScheduleOptions options;
    options.schedule = entry.name;
    if (entry.name != "one_cycle") options.warmup = "3 steps";
    options.decay_every = "1 sample";
    options.milestones = {"4 samples"};
    const Schedule schedule(options, Progress{.steps = 8, .samples = 50, .epochs = 2}, kBatch);
    for (Index step = 0; step <= 8; ++step)
      EXPECT_LE(schedule.lr({.steps = step, .samples = step, .epochs = 0}), options.lr) << entry.name;
  }
}

TEST(Schedule, AWarmUpLongerThanTheRunIsCutOff) {
  ScheduleOptions options{.warmup = "100 steps", .warmup_from = 0};
  EXPECT_DOUBLE_EQ(Schedule(options, at_step(50), kBatch).lr(at_step(50)), 0.5 * options.lr);
}

// At the end of a warm-up that takes the whole run, and without one.
TEST(Schedule, EachBeginsAtThePeakAndEndsWhereItSays) {
  for (const DecayEntry& entry : decay_catalog()) {
    SCOPED_TRACE(entry.name);
    ScheduleOptions options;
    options.schedule = entry.name;
    options.lr = 0.1;  // before it is scaled, which the last one is not
    options.lr_scaling = "linear";
    options.lr_reference_batch = 1;
    options.end_lr = std::ranges::count(entry.options, "train.end_lr") > 0 ? 0.1 : 0;
    options.milestones = {"20 steps"};
    options.decay_every = "20 steps";
    options.warmup_share = 0;
    options.decay_share = 1;
    if (entry.name != "one_cycle") {
      options.warmup = "50 steps";
      EXPECT_DOUBLE_EQ(Schedule(options, at_step(50), kBatch).lr(at_step(50)),
                       entry.name == "milestones" ? 0.04 : 0.4);
    }
    options.warmup = entry.name == "inverse_sqrt" ? "1 step" : "0 steps";
    const Schedule schedule(options, at_step(50), kBatch);
    EXPECT_DOUBLE_EQ(schedule.lr(at_step(entry.name == "inverse_sqrt" ? 1 : 0)), 0.4);
    if (options.end_lr == 0 || entry.follows_evaluations) continue;
    EXPECT_NEAR(schedule.lr(at_step(50)), 0.1, 1e-12);
    EXPECT_NEAR(schedule.lr(at_step(60)), 0.1, 1e-12);
    EXPECT_LT(schedule.lr(at_step(25)), 0.4);
  }
}

TEST(Schedule, TheRateFollowsTheBatchAsAsked) {
  ScheduleOptions options{.lr = 0.1, .lr_reference_batch = 256};
  const auto peak = [&](const std::string& scaling) {
    options.lr_scaling = scaling;
    return Schedule(options, at_step(50), 1024).peak_lr();
  };
  EXPECT_DOUBLE_EQ(peak("none"), 0.1);
  EXPECT_DOUBLE_EQ(peak("linear"), 0.4);
  EXPECT_DOUBLE_EQ(peak("sqrt"), 0.2);
}

std::string error_of(const ScheduleOptions& options, Index batch = kBatch) {
  return test::error_or<ConfigError>("no error", [&] { Schedule(options, at_step(50), batch); });
}

TEST(Schedule, EndLrIsComparedWithTheScaledRate) {
  ScheduleOptions options{
      .lr = 0.1, .lr_scaling = "linear", .lr_reference_batch = 4, .schedule = "cosine", .end_lr = 0.15};
  EXPECT_EQ(error_of(options, 8), "no error") << "the peak is 0.2";
  options.end_lr = 0.08;
  EXPECT_NE(error_of(options, 2).find("train.end_lr is 0.08, above the peak of 0.05"), std::string::npos);
}

TEST(Schedule, BadOptionsAreNamed) {
  ScheduleOptions unknown_decay;
  unknown_decay.schedule = "cosin";
  EXPECT_TRUE(error_of(unknown_decay)
                  .starts_with("unknown schedule 'cosin'; did you mean 'cosine'? (known: constant, "));
  ScheduleOptions unknown_scaling;
  unknown_scaling.lr_scaling = "liner";
  EXPECT_EQ(error_of(unknown_scaling),
            "unknown lr_scaling 'liner'; did you mean 'linear'? (known: none, linear, sqrt)");
  ScheduleOptions no_time{.schedule = "step", .decay_every = "0 epochs"};
  EXPECT_TRUE(error_of(no_time).starts_with("train.decay_every = '0 epochs'")) << error_of(no_time);
  no_time.schedule = "exponential";
  EXPECT_TRUE(error_of(no_time).starts_with("train.decay_every = '0 epochs'")) << error_of(no_time);
}

TEST(Schedule, MilestonesAreTimesOfTheRunAboveItsStart) {
  ScheduleOptions options;
  options.schedule = "milestones";
  test::expect_parts(error_of(options), {"nothing to fall at", "train.milestones = [\"30 epochs\""});
  options.milestones = {"3 epochs", "0 steps"};
  test::expect_parts(error_of(options), {"train.milestones has '0 steps'", "start of the run"});
  options.milestones = {"3 epoches"};
  test::expect_parts(error_of(options), {"train.milestones = '3 epoches'", "the unit is unknown"});
  // Their order does not matter, and one that rounding would miss is met.
  options.milestones = {"3 epochs", "0.3 epochs"};
  const Schedule schedule(options, at_step(50), kBatch);
  EXPECT_DOUBLE_EQ(schedule.lr(at_step(2)), 0.01);
  EXPECT_DOUBLE_EQ(schedule.lr({.steps = 3, .samples = 12, .epochs = 0.1 + 0.1 + 0.1 - 1e-16}), 0.001);
  EXPECT_NEAR(schedule.lr(at_step(30)), 0.0001, 1e-12);
}

TEST(Schedule, AWarmUpIsWantedWhereItBelongs) {
  ScheduleOptions options;
  options.schedule = "one_cycle";
  EXPECT_EQ(error_of(options), "no error");
  options.warmup = "5 steps";
  test::expect_parts(error_of(options),
                     {"'one_cycle' has a warm-up of its own", "remove train.warmup = '5 steps'"});
  options.schedule = "inverse_sqrt";
  EXPECT_EQ(error_of(options), "no error");
  options.warmup = "0 epochs";
  test::expect_parts(error_of(options), {"'inverse_sqrt'", "train.warmup is 0", "\"4000 steps\""});
}

TEST(ParseDuration, ReadsEveryUnit) {
  const auto expect = [](std::string_view text, double value, Duration::Unit unit) {
    const Duration duration = parse_duration("train.warmup", text);
    EXPECT_EQ(duration.value, value) << text;
    EXPECT_EQ(duration.unit, unit) << text;
  };
  expect("500 steps", 500, Duration::Unit::kSteps);
  expect("1 step", 1, Duration::Unit::kSteps);
  expect("64000 samples", 64000, Duration::Unit::kSamples);
  expect("1e6 samples", 1e6, Duration::Unit::kSamples);
  expect("2.5 epochs", 2.5, Duration::Unit::kEpochs);
  expect("  1epoch ", 1, Duration::Unit::kEpochs);
}

TEST(ParseDuration, ErrorsNameTheKeyTheTextAndTheProblem) {
  const auto expect = [](const std::string& text, const std::string& problem) {
    const std::string error = test::error_text<ConfigError>([&] { parse_duration("train.warmup", text); });
    EXPECT_TRUE(error.starts_with("train.warmup = '" + text + "': " + problem + "; ")) << error;
  };
  expect("", "it does not start with a number");
  expect("steps", "it does not start with a number");
  expect("inf steps", "it does not start with a number");
  expect("nan epochs", "it does not start with a number");
  expect("-1 steps", "the number is negative");
  expect("5", "the unit is missing");
  expect("5 hours", "the unit is unknown");
  expect("5 steps more", "the unit is unknown");
  expect("2.5 steps", "only epochs can be divided");
}

}  // namespace lockstep::schedule_test
