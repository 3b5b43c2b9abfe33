// How long a run still takes: nothing is said before there is something to go by, and evaluations count.
#include "lockstep/report/live/progress_line.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// Of a run of 4 epochs with 10 steps of 10 samples each.
Progress at(Index steps) {
  return {.steps = steps, .samples = 10 * steps, .epochs = static_cast<double>(steps) / 10};
}

Duration epochs(double value) {
  return {.value = value, .unit = Duration::Unit::kEpochs};
}

TEST(TimeEstimate, ThereIsNoneBeforeSomeStepsWereSeen) {
  TimeEstimate estimate(at(40), {});
  EXPECT_FALSE(estimate.rate());
  estimate.on_step(at(1), 100);
  EXPECT_FALSE(estimate.rate());
  estimate.on_step(at(2), 100.1);
  EXPECT_FALSE(estimate.seconds_left());
  estimate.on_step(at(11), 101);
  EXPECT_DOUBLE_EQ(*estimate.rate(), 100);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 2.9);
}

// A run that goes on from step 30 is as fast as what was seen of it.
TEST(TimeEstimate, CountsFromTheFirstStepThatWasSeen) {
  TimeEstimate estimate(at(40), {});
  estimate.on_step(at(30), 5);
  estimate.on_step(at(35), 6);
  EXPECT_DOUBLE_EQ(*estimate.rate(), 50);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 1);
}

TEST(TimeEstimate, EvaluationsAreNoTrainingAndThoseStillDueAreAddedToIt) {
  TimeEstimate estimate(at(40), {.every = epochs(1), .validation = false, .test = true});
  estimate.on_step(at(1), 0);
  estimate.on_step(at(10), 0.9);
  EXPECT_DOUBLE_EQ(*estimate.rate(), 100);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 3);  // how long an evaluation takes is not known yet
  estimate.on_evaluation(Split::kTest, 7);
  estimate.on_step(at(11), 8);
  EXPECT_DOUBLE_EQ(*estimate.rate(), 100);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 2.9 + 3 * 7);  // after epochs 2, 3 and 4
  estimate.on_step(at(12), 8.1);
  EXPECT_NEAR(*estimate.rate(), 100, 1e-9) << "the evaluation was before the step before";
}

TEST(TimeEstimate, CountsTheEvaluationsThatAreDue) {
  const EvaluationSchedule test{.every = epochs(1), .validation = false, .test = true};
  EXPECT_EQ(test.still_due(Split::kTest, at(1), at(40)), 4);
  EXPECT_EQ(test.still_due(Split::kTest, at(9), at(40)), 4);
  EXPECT_EQ(test.still_due(Split::kTest, at(10), at(40)), 3);
  EXPECT_EQ(test.still_due(Split::kTest, at(39), at(40)), 1);
  EXPECT_EQ(test.still_due(Split::kTest, at(40), at(40)), 1);
  EXPECT_EQ(test.still_due(Split::kValidation, at(1), at(40)), 0);
  // With both, the test set is evaluated at the end only.
  const EvaluationSchedule both{.every = epochs(0.5), .validation = true, .test = true};
  EXPECT_EQ(both.still_due(Split::kValidation, at(1), at(40)), 8);
  EXPECT_EQ(both.still_due(Split::kValidation, at(5), at(40)), 7);
  EXPECT_EQ(both.still_due(Split::kTest, at(1), at(40)), 1);
  // Rarely: at the end in any case.
  const EvaluationSchedule rare{.every = epochs(100), .validation = false, .test = true};
  EXPECT_EQ(rare.still_due(Split::kTest, at(1), at(40)), 1);
  const EvaluationSchedule never{.every = {}, .validation = false, .test = true};
  EXPECT_EQ(never.still_due(Split::kTest, at(1), at(40)), 1);
  const EvaluationSchedule steps{.every = Duration{15, Duration::Unit::kSteps}, .test = true};
  EXPECT_EQ(steps.still_due(Split::kTest, at(14), at(40)), 3);
  EXPECT_EQ(steps.still_due(Split::kTest, at(15), at(40)), 2);
  EXPECT_EQ(EvaluationSchedule{}.still_due(Split::kTest, at(1), at(40)), 0);
}

// The test set of a run with a validation set was not evaluated yet: it is taken to be alike.
TEST(TimeEstimate, ASetThatWasNotEvaluatedYetTakesAsLongAsTheOther) {
  TimeEstimate estimate(at(40), {.every = epochs(1), .validation = true, .test = true});
  estimate.on_step(at(1), 0);
  estimate.on_step(at(10), 0.9);
  estimate.on_evaluation(Split::kValidation, 2);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 3 + 3 * 2 + 2);
}

}  // namespace
}  // namespace lockstep
