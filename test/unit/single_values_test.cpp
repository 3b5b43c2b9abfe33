#include "lockstep/distributed/replica_states.h"

#include "lockstep/base/errors.h"
#include "lockstep/report/tables/tables.h"
#include "support/planned_run.h"

namespace lockstep::single_values_test {

// Nodes: 0 dense, 1 batch_norm, 2 relu, 3 dense, 4 batch_norm, 5 dense.
constexpr Index kFirst = 1;
constexpr Index kSecond = 4;

Model deep(const std::string& first, const std::string& second) {
  return Model({.layers = "dense(6) batch_norm(mode=" + first + ") relu dense(5) batch_norm(mode=" + second +
                          ") dense(3)"},
               {{7}});
}

TEST(SingleValues, AreThoseOfWhatIsNormalisedTogether) {
  struct Expected {
    std::string mode;
    std::vector<Index> rows;
    Index replicas;
  };
  const std::vector<Expected> cases{
      {"local", {2, 2, 2, 2}, 0},    {"local", {2, 1, 1, 0}, 2},    {"averaged", {1, 1, 1, 1}, 4},
      {"sync", {1, 1, 0, 0}, 0},     {"sync", {1, 0, 0, 0}, 1},     {"group(2)", {1, 1, 0, 1}, 1},
      {"group(3)", {1, 1, 0, 1}, 1}, {"group(3)", {2, 0, 0, 2}, 0},
  };
  for (const Expected& expected : cases) {
    const Model model = deep(expected.mode, expected.mode);
    SingleValues values(model, 4, 1);
    values.look(expected.rows);
    EXPECT_EQ(values.replicas(), expected.replicas) << expected.mode;
  }
}

// Nothing stays of the step before.
TEST(SingleValues, ANewStepIsLookedAtAnew) {
  const Model model = deep("local", "local");
  SingleValues values(model, 2, 1);
  EXPECT_EQ(values.replicas(), 0);
  values.look(std::vector<Index>{1, 1});
  EXPECT_EQ(values.replicas(), 2);
  EXPECT_EQ(values.first_op(), kFirst);
  values.look(std::vector<Index>{3, 1});
  EXPECT_EQ(std::tuple(values.replicas(), values.replicas({0, 1}), values.replicas({1, 2})),
            std::tuple(1, 0, 1));
  values.look(std::vector<Index>{3, 3});
  EXPECT_EQ(values.replicas(), 0);
}

TEST(SingleValues, APartOfASampleCanBeOne) {
  const Model local = deep("local", "local");
  SingleValues parts(local, 2, 2);
  parts.look(std::vector<Index>{3, 4});
  EXPECT_EQ(parts.replicas(), 1);
  // Two parts of all replicas together: three samples and two.
  const Model sync = deep("sync", "sync");
  SingleValues together(sync, 3, 2);
  together.look(std::vector<Index>{2, 2, 1});
  EXPECT_EQ(together.replicas(), 0);
  together.look(std::vector<Index>{2, 1, 0});
  EXPECT_EQ(together.replicas(), 2);
}

TEST(SingleValues, APictureHasMore) {
  const Model model({.layers = "conv2d(4, 3, padding=same) batch_norm flatten dense(3)"}, {{3, 3, 1}});
  SingleValues values(model, 2, 1);
  values.look(std::vector<Index>{1, 1});
  EXPECT_EQ(values.replicas(), 0);
  const Model one_pixel({.layers = "conv2d(4, 3) batch_norm flatten dense(3)"}, {{3, 3, 1}});
  SingleValues pixel(one_pixel, 2, 1);
  pixel.look(std::vector<Index>{1, 1});
  EXPECT_EQ(pixel.replicas(), 2);
}

TEST(SingleValues, MomentsFollowWhatIsBeforeTheFirst) {
  const Model local = deep("averaged", "local");
  SingleValues values(local, 3, 1);
  values.look(std::vector<Index>{4, 1, 0});
  for (const Index replica : {0, 2}) EXPECT_TRUE(values.are_followed(replica, kSecond)) << replica;
  EXPECT_TRUE(values.are_followed(1, kFirst)) << "together with the other replica's";
  EXPECT_FALSE(values.are_followed(1, kSecond));
  // What one of them makes constant goes into the sums of all.
  const Model mixed = deep("local", "sync");
  SingleValues all(mixed, 3, 1);
  all.look(std::vector<Index>{4, 1, 0});
  for (const Index replica : {0, 1, 2}) EXPECT_FALSE(all.are_followed(replica, kSecond)) << replica;
}

TEST(SingleValues, ThePlanKnowsThoseOfTheLastStepAndRefusesThoseOfEach) {
  test::Given setup = test::typical("dense(8) batch_norm relu dense(10)");
  setup.train.replicas = 4;
  setup.train.global_batch = 40;
  setup.rows = 402;
  const RunPlan plan = setup.plan(1);
  EXPECT_EQ(plan.single_values, 2);
  EXPECT_NE(plan_table(std::span(&plan, 1)).find("gives 2 of 4 replicas a single value"), std::string::npos);
  setup.train.tail = Tail::kDrop;
  EXPECT_EQ(setup.plan(1).single_values, 0);
  setup.train.tail = Tail::kKeep;
  setup.rows = 408;
  const RunPlan fits = setup.plan(1);
  EXPECT_EQ(fits.single_values, 0);
  EXPECT_EQ(plan_table(std::span(&fits, 1)).find("single value"), std::string::npos);
  // Fewer rows than the batch: the only step of each epoch.
  setup.rows = 7;
  EXPECT_THROW(setup.plan(1), ConfigError);
}

}  // namespace lockstep::single_values_test
