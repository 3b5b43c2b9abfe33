// Looking names up, and what a misspelt one is told.
#include "lockstep/base/catalog.h"

#include <gtest/gtest.h>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

const std::vector<std::string> kNames{"sgd", "adam", "adamw", "adagrad", "rmsprop", "lamb"};

TEST(NearestName, FindsTypos) {
  EXPECT_EQ(nearest_name("adm", kNames), "adam");
  EXPECT_EQ(nearest_name("adagard", kNames), "adagrad");
  EXPECT_EQ(nearest_name("rmspropp", kNames), "rmsprop");
  EXPECT_EQ(nearest_name("RMSprop", kNames), "");
  EXPECT_EQ(nearest_name("rms_prop", kNames), "rmsprop");
  EXPECT_EQ(nearest_name("lamp", kNames), "lamb");
  EXPECT_EQ(nearest_name("dsg", kNames), "");
  EXPECT_EQ(nearest_name("sdg", kNames), "sgd");
}

TEST(NearestName, PrefersTheNearer) {
  EXPECT_EQ(nearest_name("adamw", kNames), "adamw");
  EXPECT_EQ(nearest_name("adamww", kNames), "adamw");
}

TEST(NearestName, SuggestsNothingFarAway) {
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("lr", std::vector<std::string>{"np", "ab"}), "");
  EXPECT_EQ(nearest_name("something else", kNames), "");
  EXPECT_EQ(nearest_name("sgd", std::vector<std::string>{}), "");
}

struct Entry {
  std::string name;
  int value = 0;
};

TEST(FindEntry, FindsTheEntryOrNamesTheNearest) {
  const std::vector<Entry> catalog{{"first", 1}, {"second", 2}};
  EXPECT_EQ(find_entry<Entry>(catalog, "place", "second").value, 2);
  try {
    find_entry<Entry>(catalog, "place", "secnd");
    FAIL() << "found an entry that is not there";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "unknown place 'secnd'; did you mean 'second'? (known: first, second)");
    EXPECT_EQ(error.exit_code(), kExitConfig);
  }
}

}  // namespace
}  // namespace lockstep
